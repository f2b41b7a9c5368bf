// SPDX-License-Identifier: BSD-3-Clause
// The reports that a client gets without a request, or later than it: one queue, in the order of
// their completions. A report waits here until the completion ring has a free slot, so none is lost
// when the ring is full.
//
//   kJob      kJobFormed, kJobFailed
//   kLinks    kLinksOpen, kLinked, kLinkDone, kUnlinked    before the messages of a new peer
//   kFaults   kFault                                       the cause before the end
//   kPeers    kPeerLeft, kPeerDied                         behind the messages of that peer
//   kLeft     kLeft                                        the last one
//
// Each stage is before the next one. Reports of one stage keep their order, but the newest fault is
// the first. The number of reports is bounded by the ranks, the kinds of faults, and the calls that
// wait for a link.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "abi/records.h"
#include "base/error.h"
#include "wire/ids.h"

namespace ulc::state {
class Archive;
}  // namespace ulc::state

namespace ulc::endpoint {

/// One completion that is to be written.
struct Report {
    abi::CompletionKind kind{};
    Err status = Err::kOk;
    Rank rank = kNoRank;       ///< a peer, or the slot of a link; kLeft: as abi/records.h has it
    std::uint32_t stream = 0;  ///< kFault: the last group held up; kLinked: 1 if no call waits
    /// kLinkDone: cookie; kFault: packets, messages or milliseconds; kLeft: bytes
    std::uint64_t tag = 0;
    void fields(state::Archive& archive);
};

class Reports {
public:
    /// kNone: not a report; its completion is written at once.
    enum class Stage : std::uint8_t { kJob, kLinks, kFaults, kPeers, kLeft, kNone };
    enum class Written : std::uint8_t {
        kDone,   ///< its completion is published
        kWaits,  ///< stays; those behind it may be written
        kFull,   ///< the completion ring has no free slot
    };

    [[nodiscard]] static Stage stage_of(abi::CompletionKind kind) noexcept;
    /// Queues a report behind those of its stage, a fault before them. A fault of the same kind and
    /// rank grows by the packets of this one; a failure takes the place of one that waits.
    void add(const Report& report);
    /// Queues kJobFailed with a text for the client.
    void add_failure(Err error, std::string_view text);
    /// Returns the text of the last failure.
    [[nodiscard]] const std::string& failure() const noexcept { return failure_; }

    [[nodiscard]] bool empty() const noexcept { return queue_.empty(); }
    /// True if a report of that stage, or of one before it, waits.
    [[nodiscard]] bool has(Stage last) const noexcept {
        return !queue_.empty() && stage_of(queue_.front().kind) <= last;
    }
    /// True if the end of that peer is not reported yet.
    [[nodiscard]] bool has_end_of(Rank rank) const noexcept;
    /// Drops the report of the end of a peer.
    void drop_end_of(Rank rank) noexcept;
    /// Drops what a client that has left does not get any more: all but failures and kLeft.
    void drop_for_leave() noexcept;
    /// Calls write(report) for each report up to that stage, in order, and drops those that it has
    /// written. It adds none. Returns true if it wrote some.
    template <typename Write>
    bool write(Stage last, Write write) {
        std::size_t kept = 0;
        std::size_t at = 0;
        bool any = false;
        for (; at < queue_.size() && stage_of(queue_[at].kind) <= last; ++at) {
            const Written written = write(std::as_const(queue_[at]));
            if (written == Written::kFull) break;
            if (written == Written::kWaits) {
                queue_[kept++] = queue_[at];
            } else {
                any = true;
            }
        }
        queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(kept),
                     queue_.begin() + static_cast<std::ptrdiff_t>(at));
        return any;
    }

    /// True if the queue is in order and has nothing twice that may be there once. ranks: those of
    /// the job or the slots for links; 0: there is neither. O(reports log reports).
    [[nodiscard]] bool is_valid(std::size_t ranks) const;
    /// Fails the process unless is_valid().
    void check_invariants(std::size_t ranks) const;
    void fields(state::Archive& archive);

private:
    friend struct Breaker;  // tests/unit/engine/invariants_test.cc

    std::vector<Report> queue_;
    std::string failure_;
};

}  // namespace ulc::endpoint
