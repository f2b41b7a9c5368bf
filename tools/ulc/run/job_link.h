// SPDX-License-Identifier: BSD-3-Clause
// One rank of a small job, for the subcommands that send messages: open, join, blocking send and
// receive, leave.
#pragma once

#include <ulc.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ulc::tools {

class Command;

struct JobOptions {
    std::string engine;  ///< empty: ULC_ENGINE, else the default socket
    std::string job;     ///< empty: ULC_JOB
    int rank = -1;       ///< -1: ULC_RANK
    int size = 0;        ///< 0: ULC_SIZE
    double timeout_seconds = 10;
};

/// --engine, --job, --rank, --size, --timeout.
void add_job_options(Command& command, JobOptions& options);

class JobLink {
public:
    /// command: how messages begin, "ulc ping".
    JobLink(std::string command, JobOptions options)
        : command_(std::move(command)), options_(std::move(options)) {}

    /// Opens, joins and waits until the job has formed; says on stderr what went wrong.
    [[nodiscard]] bool join();
    [[nodiscard]] bool leave();

    /// Also when join() failed.
    [[nodiscard]] bool is_rank_0() const;
    [[nodiscard]] std::uint16_t rank() const { return ulc_rank(ep_.get()); }
    [[nodiscard]] std::uint16_t size() const { return ulc_size(ep_.get()); }

    /// All return an error of ulc.h. seconds: how long a receive may take.
    [[nodiscard]] int send(std::uint16_t to, std::uint64_t tag,
                           const std::vector<unsigned char>& payload);
    [[nodiscard]] int multicast(std::uint64_t tag, const std::vector<unsigned char>& payload);
    /// into.size() is the capacity; tag 0: any.
    [[nodiscard]] int receive(std::uint16_t from, std::uint64_t tag,
                              std::vector<unsigned char>& into, ulc_status* status, double seconds);

    [[nodiscard]] ulc_endpoint* endpoint() const { return ep_.get(); }
    [[nodiscard]] double timeout_seconds() const { return options_.timeout_seconds; }
    /// Says "<command>: <what>: <why>" unless error is ULC_OK; true if it is not.
    bool failed(const std::string& what, int error) const;

private:
    struct Close {
        void operator()(ulc_endpoint* ep) const { ulc_close(ep); }
    };

    std::string command_;
    JobOptions options_;
    std::unique_ptr<ulc_endpoint, Close> ep_;
};

}  // namespace ulc::tools
