// SPDX-License-Identifier: BSD-3-Clause
// Starts the other instances of a program that was started alone, by `ulc run --hosts --others`.
//
//   gamma_init ──▶ reads the host file, spawns `ulc run` ──ssh──▶ instance 1, 2, … on other hosts
//   the caller joins the job as instance 0 and waits for the command when it exits
//
// Used by Process::init(). Invariant: no instance outlives the caller; the kernel ends the command
// with it, and the command ends the instances.
#pragma once

#include <sys/types.h>

#include <array>
#include <string>
#include <vector>

namespace ulc::ports {

class Others {
public:
    /// Returns the host file: ULC_HOSTS of the environment, else /etc/gamma.conf if it is there.
    /// Empty: none.
    [[nodiscard]] static std::string host_file();

    /// Reads the hosts of `file` and starts an instance on each of the first num_nodes - 1 that are
    /// not this one; num_nodes <= 0, or more than there are hosts: on all. argv: words of the
    /// program; nullptr: those of this process. False: failed; a sentence was printed.
    [[nodiscard]] bool start(const std::string& file, int num_nodes, int argc, char** argv);

    [[nodiscard]] const std::string& job() const noexcept { return job_; }
    [[nodiscard]] const unsigned char* nonce() const noexcept { return nonce_.data(); }
    [[nodiscard]] int instances() const noexcept { return instances_; }
    /// True if the command has ended, which it does only after all its instances.
    [[nodiscard]] bool have_ended() noexcept;
    /// The caller has left the group as it should; the others will too.
    void set_complete() noexcept { is_complete_ = true; }
    /// Waits for the end of the others, and ends them first unless set_complete() was called.
    void finish() noexcept;

private:
    void wait() noexcept;
    [[nodiscard]] bool spawn(const std::vector<std::string>& words, const std::string& hosts);

    std::string job_;
    std::array<unsigned char, 16> nonce_{};
    int instances_ = 0;
    pid_t command_ = -1;  ///< `ulc run`; -1: it does not run
    bool is_complete_ = false;
};

/// Returns the first words of the lines of a host file, without comments, and without the host
/// `own`, whose domain may be left out. Pure.
[[nodiscard]] std::vector<std::string> other_hosts(const std::string& text, const std::string& own);

}  // namespace ulc::ports
