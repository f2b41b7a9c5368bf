// SPDX-License-Identifier: BSD-3-Clause
// A program's place in a job as `ulc run` gives it, for benchmarks and applications: opens an
// endpoint, joins, and leaves at the end. A program that was started alone is a job of one rank
// without an engine.
#pragma once

#include <ulc.h>

#include <cstdint>
#include <memory>
#include <string>

namespace ulc::bench {

class Job {
public:
    /// Joins the job; blocks. nullptr: failed; `why` is a sentence with the advice.
    static std::unique_ptr<Job> join(std::string& why);
    ~Job();  ///< leaves, so that pending messages are delivered
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;

    [[nodiscard]] bool alone() const { return ep_ == nullptr; }
    [[nodiscard]] std::uint16_t rank() const { return alone() ? std::uint16_t{0} : ulc_rank(ep_); }
    [[nodiscard]] std::uint16_t size() const { return alone() ? std::uint16_t{1} : ulc_size(ep_); }
    [[nodiscard]] ulc_endpoint* endpoint() const { return ep_; }
    [[nodiscard]] ulc_group world() const { return alone() ? 0 : ulc_world(ep_); }

    /// Broadcasts and allgathers that follow cross the wire by unicast only, as on a network
    /// without broadcast (GAMMA Fig. 6.3): trees and rings. The same at all ranks.
    void emulate_broadcast(bool on) { emulated_ = on; }

    // Collectives over all ranks; alone they are copies. Lengths in bytes. A failure ends the
    // program with a message: nothing sensible can follow it here.
    void barrier();
    void broadcast(void* buffer, std::size_t octets, std::uint16_t root = 0);
    void allgather(const void* input, void* output, std::size_t octets);
    /// lengths: one a rank; the blocks lie one behind the other, the own one is there already.
    void allgather_in_place(void* blocks, const std::size_t* lengths);
    /// Scatters from rank 0, or gathers at it, blocks one behind the other; lengths: one a rank.
    /// `all` is looked at by rank 0 alone.
    void scatter(const void* all, const std::size_t* lengths, void* own);
    void gather(const void* own, void* all, const std::size_t* lengths);

    void send(std::uint16_t to, const void* buffer, std::size_t octets);
    void receive(std::uint16_t from, void* buffer, std::size_t octets);

private:
    explicit Job(ulc_endpoint* ep) : ep_(ep) {}
    ulc_endpoint* ep_;
    bool emulated_ = false;
};

/// Ends the program if `error` is not ULC_OK, with the name of the failed action.
void require(int error, const char* what);

}  // namespace ulc::bench
