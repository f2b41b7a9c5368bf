// SPDX-License-Identifier: BSD-3-Clause
// The global-program checker (URTP §2.2): takes the schedules of all ranks of one collective and
// proves, without running any protocol, that they fit together.
//
//   valid      every schedule passes exec::validate
//   matched    the i-th message from s to d meets the i-th receive of d from s, of equal length
//   no race    two steps of a rank that touch the same bytes, one writing, are ordered
//   live       some order of all events exists (no deadlock), with unbounded buffers
//   together   (barriers) no rank is done before every rank has begun
//   right      the final bytes are those that the operation promises; each is followed as a symbol
//   alike      (allreduce) every rank's result was folded in the same order, with the same brackets
//   k-buffer   no member can be sent more than k messages ahead of what it has taken
//
// Matching is static because starts keep index order per peer and direction. Without races the
// result is then the same in every order of execution, so one order proves all.
//
// It also reports the maximum of buffers that a receiver needs, and the bytes that cross a
// broadcast medium. The buffers are the k of "k-buffer correct", asynchronously: a message counts
// from when it may be sent until it is taken, in the worst of all executions (buffers.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "abi/schedule.h"

namespace ulc::sim {

/// Content of a byte: 0 = undefined, else its contributor, or the contributors that were folded
/// into it, in which order and with which brackets. Byte i of `count` contributors from `first` on
/// (modulo the ranks), x ∘ (x+1) ∘ …:
///
///     63        62 ── 44      43 ── 32    31 ── 20    19 ── 0
///     defined   brackets      count       first       byte
using Symbol = std::uint64_t;
using Symbols = std::vector<Symbol>;
inline constexpr Symbol kBrackets = Symbol{0x7ffff} << 44;

[[nodiscard]] constexpr Symbol symbol_of(std::uint64_t first, std::uint64_t count,
                                         std::uint64_t octet) {
    return Symbol{1} << 63 | count << 32 | first << 20 | octet;
}

/// One rank's memory before the operation, and the required content of its output after it (0 =
/// does not matter; brackets do not count).
struct RankGoal {
    Symbols input;
    Symbols output;
    Symbols expected;
};

/// Requirements of a global program beyond its goals.
struct Demands {
    bool barrier = false;      ///< no rank may be done before all have begun
    bool alike = false;        ///< a fold has the same order and brackets at every rank
    bool commutative = false;  ///< a fold of all may begin with any rank
    std::uint32_t buffers_max =
        UINT32_MAX;  ///< the k that a receiver has; the first message beyond it is the bad step
};

struct Verdict {
    bool ok = true;
    std::uint16_t rank = 0;  ///< rank of the first bad step
    std::uint32_t step = 0;
    std::string what;
    std::uint32_t buffers = 0;        ///< k: messages, at the worst receiver
    std::uint64_t buffer_octets = 0;  ///< their bytes, in an execution that reaches k
    std::uint64_t wire_messages = 0;
    std::uint64_t wire_octets = 0;  ///< payload; a multicast counts once
};

/// goals.size() = schedules.size() = number of ranks, at most 4095.
[[nodiscard]] Verdict check_schedules(const std::vector<abi::Schedule>& schedules,
                                      const std::vector<RankGoal>& goals,
                                      const Demands& demands = {});

/// Checks without data, for lengths that no memory holds: valid, matched, no race, live. `octets`:
/// those of every input and output.
[[nodiscard]] Verdict check_fit(const std::vector<abi::Schedule>& schedules, std::uint64_t octets);

/// Checks valid, matched, live, and the buffers: all that the k of a schedule requires. `octets`:
/// as in check_fit.
[[nodiscard]] Verdict check_buffers(const std::vector<abi::Schedule>& schedules,
                                    std::uint64_t octets);

}  // namespace ulc::sim
