// A program's place in a job as `ulc run` gives it, for benchmarks and applications: opens an endpoint, joins,
// and leaves at the end. A program that was started alone is a job of one rank without an engine.
#pragma once

#include <ulc.h>

#include <cstdint>
#include <memory>
#include <string>

namespace ulc::bench {

class Job {
public:
    /// Blocking. nullptr: failed; `why` is a sentence that says what to do.
    static std::unique_ptr<Job> join(std::string& why);
    ~Job();  ///< leaves, so that what was sent is delivered
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;

    [[nodiscard]] bool alone() const { return ep_ == nullptr; }
    [[nodiscard]] std::uint16_t rank() const { return alone() ? std::uint16_t{0} : ulc_rank(ep_); }
    [[nodiscard]] std::uint16_t size() const { return alone() ? std::uint16_t{1} : ulc_size(ep_); }
    [[nodiscard]] ulc_endpoint* endpoint() const { return ep_; }
    [[nodiscard]] ulc_group world() const { return alone() ? 0 : ulc_world(ep_); }

    // Collectives over all ranks; alone they are copies. A failure ends the program with a message: nothing
    // sensible can follow it here.
    void barrier();
    void broadcast(void* buffer, std::size_t octets);  ///< from rank 0
    void allgather(const void* input, void* output, std::size_t octets);

private:
    explicit Job(ulc_endpoint* ep) : ep_(ep) {}
    ulc_endpoint* ep_;
};

/// Ends the program if `error` is not ULC_OK, naming what was tried.
void require(int error, const char* what);

}  // namespace ulc::bench
