// SPDX-License-Identifier: BSD-3-Clause
// Distributed shared memory on Express Messages: all processes see the same bytes, which the
// protection of the pages keeps consistent (protocol.h). Locks and barriers order accesses.
//
//   a thread touches a page that it may not ─SIGSEGV─▶ fault(), waits ──▶ goes on
//   server thread: messages of others ──▶ Node::on_message()
//
// The pages are mapped twice: as the program sees them, protected, and whole for the server thread.
// Used by ulc-sor and ulc-route. Limits: up to 64 processes; one thread of each process touches the
// shared memory, and no handler of a message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "bench/apps/dsm/protocol.h"

namespace ulc::dsm {

/// Joins the job with `bytes` of shared memory, zeros at first. nullptr: failed; a sentence was
/// printed. Collective.
[[nodiscard]] void* start(std::size_t bytes);
/// Leaves, when all processes do. Returns false after a failure, which was printed.
[[nodiscard]] bool stop();

/// Forbids messages to interrupt a thread of this process.
void poll_only();

[[nodiscard]] unsigned process();
[[nodiscard]] unsigned processes();

/// Waits until all processes have called it. False: a process has died.
[[nodiscard]] bool barrier();
/// Gives one process at a time the lock of that number, in the order of asking.
void lock(unsigned number);
void unlock(unsigned number);

/// Counts of all processes, and the longest time of one.
struct Report {
    Counts counts;
    double seconds = 0;
};
/// Bytes that measure() needs in the shared memory.
inline constexpr std::size_t kReportBytes = std::size_t{kProcessesMax} * 4096;
/// Collective: runs step(0) … step(steps - 1) with a barrier before, between and behind them.
/// Puts each process's figures into `pages`. Returns nothing if a process has died.
[[nodiscard]] std::optional<Report> measure(void* pages, unsigned steps,
                                            const std::function<void(unsigned)>& step);
/// Prints the sums divided by `units`, with the figures of Express's tables 2 and 4.
void print(const Counts& sum, const char* unit, double units, double polled_in_paper);

}  // namespace ulc::dsm
