// SPDX-License-Identifier: BSD-3-Clause
// Schedules that the engine runs for one client (decision D10), while the client computes.
// The executor is the one that libulc runs (libulc/exec/); this is its other side:
//
//   kOffload ── copied, validated ▶ [ running ] ──all steps done──▶ kOffloadDone
//                  │ refused             │ a member gone or disagreeing, cancelled
//                  ▼                     ▼
//               kOffloadDone       [ failing ] ── its sends have left the queue ──▶ kOffloadDone
//
// Data sent and received are in the client's tx arena: the engine copies frames from and to there,
// and no block of the rx arena is used. If the buffers of a schedule are elsewhere, the client must
// stage them or run the schedule itself.
//
// Sends go through the client's own send queue (SendQueue::inject), so the ordering rule holds and
// no send overtakes a half-sent message. A message belongs to the schedule if its tag matches
// (abi::OffloadRequest::tag_mask) and a receive from its source is left, whether that step may
// start yet or not. No earlier step touches the memory into which a step receives; the client must
// ensure that. So a message waits for nothing here, and blocks no message behind it. A later step
// may send it on from there, since it depends on that one.
//
// Messages that came before the schedule belong to the client. PassedLog reports those that the
// client could not know of when it wrote the record; their steps count as done, and the answer
// names their sources. If they might have to be sent on, the schedule is refused, because they are
// in the rx arena, which belongs to the client by then.
//
// Hostile schedules: nothing is read twice; number, steps and dependencies are bounded (config.h),
// there are no reductions and no copies, so a round does bounded work; ranges are checked against
// buffers, buffers against the arena. Each refusal has a counter.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "abi/region.h"
#include "abi/schedule.h"
#include "base/counters.h"
#include "base/error.h"
#include "base/units.h"
#include "endpoint/outlet.h"
#include "endpoint/send_queue.h"
#include "urtp/transport.h"

namespace ulc::state {
class Archive;
}  // namespace ulc::state

namespace ulc::endpoint {

struct Offload;  // offload.cc

class Offloads {
public:
    Offloads(std::uint32_t schedules_max, std::uint32_t steps_max, Counters& counters);
    ~Offloads();
    Offloads(const Offloads&) = delete;
    Offloads& operator=(const Offloads&) = delete;

    /// The data against which a new schedule is validated.
    struct Context {
        const abi::Region& region;
        const urtp::Transport* member;  ///< nullptr: no job
        const Outlet& outlet;
    };
    /// Takes a kOffload record. Errors: kCorrupt (no correct client writes this), else a refusal,
    /// counted, to be answered: kNotFormed, kInvalid, kLimit, kAgain (too late: its messages belong
    /// to the client).
    [[nodiscard]] Err take(const abi::SubmissionRecord& record, const Context& context);
    /// Ends the schedule with kClosed. An unknown cookie is one that has ended.
    void cancel(std::uint32_t cookie) noexcept;
    void cancel_all() noexcept;
    /// Call after all messages that the peer sent were delivered.
    void peer_gone(Rank rank, bool died) noexcept;

    /// Starts the steps that may start, and answers schedules that are over. Returns true if
    /// something moved.
    bool run(SendQueue& sends, Outlet& outlet);
    /// Reports that a send that inject() took is over.
    void on_sent(Sink sink, Err status) noexcept;

    /// Returns the schedule's step to which a new message of `length` bytes belongs, if any.
    [[nodiscard]] Sink match(Rank source, std::uint64_t tag, std::uint64_t length) noexcept;
    void write(Sink sink, std::uint64_t at, const std::byte* payload,
               std::uint32_t length) noexcept;
    /// Reports that the message is whole, or (broken) will never be.
    void arrived(Sink sink, bool broken) noexcept;

    [[nodiscard]] bool empty() const noexcept { return running_.empty(); }
    /// True if run() has more to do at once.
    [[nodiscard]] bool busy() const noexcept { return busy_; }
    /// True if run() waits for space in the send queue or the completion ring.
    [[nodiscard]] bool retry() const noexcept { return retry_; }

    /// Writes or reads what is left when no schedule is here.
    void fields(state::Archive& archive);

    /// Writes the answer to a kOffload. Returns false if there is no slot.
    static bool answer(Outlet& outlet, std::uint32_t cookie, Err status) noexcept;

private:
    [[nodiscard]] Err judge_group(const abi::SubmissionRecord& record, std::uint64_t mask,
                                  const urtp::Transport* member);
    [[nodiscard]] Err fill(Offload& offload, const abi::OffloadRequest& request,
                           const std::byte* arrays, const Context& context);
    [[nodiscard]] Err pass_over(Offload& offload, const abi::OffloadRequest& request,
                                const Outlet& outlet);
    bool start(Offload& offload, SendQueue& sends);
    [[nodiscard]] bool report(const Offload& offload, Outlet& outlet);
    [[nodiscard]] Offload* find(std::uint32_t id) const noexcept;
    void fail(Offload& offload, Err error, Rank source = 0, std::uint64_t tag = 0) noexcept;

    std::uint32_t schedules_max_;
    std::uint32_t steps_max_;
    Counters& counters_;
    std::vector<std::unique_ptr<Offload>> running_;  ///< oldest first
    std::uint32_t last_id_ = 0;
    bool busy_ = false;
    bool retry_ = false;
};

}  // namespace ulc::endpoint
