// SPDX-License-Identifier: BSD-3-Clause
// The place as Hydra knows it (MPICH's and Intel MPI's mpiexec): lines of key=value over the
// socket PMI_FD, PMI version 1.
//
//   we: cmd=init pmi_version=1 pmi_subversion=1      Hydra: cmd=response_to_init … rc=0
//       cmd=get_my_kvsname                                  cmd=my_kvsname kvsname=K
//       cmd=put kvsname=K key=ulc-nonce value=N             cmd=put_result rc=0         (rank 0)
//       cmd=barrier_in                                      cmd=barrier_out
//       cmd=get kvsname=K key=ulc-nonce                     cmd=get_result rc=0 value=N
//       cmd=finalize                                        cmd=finalize_ack
//
// The socket serves one conversation. In a process that has MPI loaded it is MPI's: there we may
// only put, wait at the barrier and get, while that MPI starts. It answers line by line, so between
// two questions of the MPI nothing is on its way.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "launcher/ways.h"

namespace ulc::launcher {
namespace {

constexpr std::size_t kLineMax = 4096;

class Conversation {
public:
    Conversation(int fd, unsigned timeout_seconds)
        : fd_(fd), end_(std::chrono::steady_clock::now() + std::chrono::seconds(timeout_seconds)) {}

    /// Sends a line and returns the answer, which must be the command `expected`; empty: failed.
    [[nodiscard]] std::string ask(const std::string& line, const std::string& expected) {
        const std::string whole = line + "\n";
        // MSG_NOSIGNAL: a launcher that is gone is a failure, not the end of the process.
        if (::send(fd_, whole.data(), whole.size(), MSG_NOSIGNAL) !=
            static_cast<ssize_t>(whole.size()))
            return "";
        std::string answer = read_line();
        return field(answer, "cmd") == expected ? answer : "";
    }

    /// Returns the value behind "key=" in a line, up to the next space.
    [[nodiscard]] static std::string field(const std::string& line, const std::string& key) {
        for (std::size_t at = 0; at < line.size();) {
            const std::size_t end = std::min(line.find(' ', at), line.size());
            if (line.compare(at, key.size() + 1, key + "=") == 0)
                return line.substr(at + key.size() + 1, end - at - key.size() - 1);
            at = end + 1;
        }
        return "";
    }

private:
    [[nodiscard]] std::string read_line() {
        std::string line;
        while (line.size() < kLineMax) {
            const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
                end_ - std::chrono::steady_clock::now());
            pollfd ready{fd_, POLLIN, 0};
            if (left.count() <= 0) return "";
            const int n = ::poll(&ready, 1, static_cast<int>(left.count()));
            if (n < 0 && errno == EINTR) continue;
            char letter = 0;
            // One letter at a time: what follows the line belongs to a later answer.
            if (n <= 0 || ::read(fd_, &letter, 1) != 1) return "";
            if (letter == '\n') return line;
            line += letter;
        }
        return "";
    }

    int fd_;
    std::chrono::steady_clock::time_point end_;
};

}  // namespace

Outcome by_pmi1(Place& place, unsigned timeout_seconds, PmiOwner owner, std::string& reason) {
    const auto fd = number_in("PMI_FD", 1U << 20U);
    const auto rank = number_in("PMI_RANK", 65533);
    const auto size = number_in("PMI_SIZE", 65534);
    if (!fd || !rank || !size || *rank >= *size) {
        reason = "PMI_FD, PMI_RANK and PMI_SIZE do not fit together; start with mpiexec";
        return Outcome::kFailed;
    }
    const bool is_guest = owner == PmiOwner::kMpi;
    Conversation hydra(static_cast<int>(*fd), timeout_seconds);
    const auto failed = [&](const char* what) {
        reason = std::string("mpiexec did not answer ") + what + " within " +
                 std::to_string(timeout_seconds) + " s; set ULC_JOB, ULC_RANK and ULC_SIZE";
        return Outcome::kFailed;
    };
    if (!is_guest &&
        hydra.ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init").empty())
        return failed("the greeting");
    const std::string space =
        Conversation::field(hydra.ask("cmd=get_my_kvsname", "my_kvsname"), "kvsname");
    if (space.empty()) return failed("the question for its key-value space");
    if (*rank == 0) {
        const auto nonce = random_nonce();
        if (!nonce || hydra
                          .ask("cmd=put kvsname=" + space +
                                   " key=ulc-nonce value=" + published(*nonce, place.addresses),
                               "put_result")
                          .empty())
            return failed("rank 0's nonce");
    }
    if (hydra.ask("cmd=barrier_in", "barrier_out").empty()) return failed("the barrier");
    if (!read_published(
            Conversation::field(
                hydra.ask("cmd=get kvsname=" + space + " key=ulc-nonce", "get_result"), "value"),
            place))
        return failed("the question for the nonce");
    if (!is_guest && hydra.ask("cmd=finalize", "finalize_ack").empty())
        return failed("the good-bye");
    place.job = job_name("pmi", space);
    place.rank = static_cast<std::uint16_t>(*rank);
    place.size = static_cast<std::uint16_t>(*size);
    return Outcome::kFound;
}

}  // namespace ulc::launcher
