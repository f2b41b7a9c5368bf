// Schedules that the engine carries out for one client (DESIGN decision 10), while the client computes. The executor is the one
// that libulc runs (libulc/exec/); this is its other side:
//
//   kOffload ── copied once, judged ──▶ [ running ] ──all steps done──▶ kOffloadDone
//                  │ refused                 │ a member gone or of another mind, cancelled
//                  ▼                         ▼
//               kOffloadDone           [ failing ] ── its sends have left the queue ──▶ kOffloadDone
//
// Data lie in the client's tx arena, both what is sent and what is received: the engine copies frames from and to there, and no
// block of the rx arena is used. A schedule whose buffers are elsewhere is the client's to stage or to run itself.
//
// Sends go through the client's own send queue (SendQueue::inject), so the ordering rule holds and nothing passes a message half
// sent. A message that comes is the schedule's if its tag says so (abi::OffloadRequest::tag_mask) and a receive from its source is left,
// whether that step may start yet or not: what a step receives no earlier step touches, which is for the client to keep. So a message
// waits for nothing here, and blocks nobody behind it. A later step may send it on from there, since it depends on that one.
//
// Messages that came before the schedule are the client's. Those that the client could not know of yet when it wrote the record,
// PassedLog tells; their steps count as done, and the answer names their sources. Where they might have to be sent on the schedule is
// refused, because they lie in the rx arena, which is the client's by then.
//
// Hostile schedules: nothing is read twice; number, steps and dependencies are bounded (config.h), there are no reductions and no
// copies, so a round does bounded work; ranges are checked against buffers, buffers against the arena. Each refusal has a counter.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "abi/region.h"
#include "abi/schedule.h"
#include "base/counters.h"
#include "base/error.h"
#include "base/units.h"
#include "endpoint/deliver.h"
#include "endpoint/send_queue.h"
#include "urtp/transport.h"

namespace ulc::state {
class Archive;
}  // namespace ulc::state

namespace ulc::engine {

struct Offload;  // offload.cc

class Offloads {
public:
    Offloads(std::uint32_t schedules_max, std::uint32_t steps_max, Counters& counters);
    ~Offloads();
    Offloads(const Offloads&) = delete;
    Offloads& operator=(const Offloads&) = delete;

    /// What a new schedule is judged against.
    struct Context {
        const abi::Region& region;
        const urtp::Transport* member;  ///< nullptr: no job
        const Deliverer& deliverer;
    };
    /// The kOffload record. Errors: kCorrupt (no correct client writes this), else a refusal, counted, to be answered: kNotFormed,
    /// kInvalid, kLimit, kAgain (too late: its messages are the client's).
    [[nodiscard]] Err take(const abi::SubmissionRecord& record, const Context& context);
    /// Ends it with kClosed. An unknown cookie is one that has ended.
    void cancel(std::uint32_t cookie) noexcept;
    void cancel_all() noexcept;
    /// After everything it sent was delivered.
    void peer_gone(Rank rank, bool died) noexcept;

    /// Starts what may start, answers what is over. True: moved.
    bool run(SendQueue& sends, abi::CompletionProducer& cq);
    /// A send that inject() took is over.
    void on_sent(Sink sink, Err status) noexcept;

    /// A message of `length` octets begins: the schedule's step that it belongs to, if any.
    [[nodiscard]] Sink match(Rank source, std::uint64_t tag, std::uint64_t length) noexcept;
    void write(Sink sink, std::uint64_t at, const std::byte* payload,
               std::uint32_t length) noexcept;
    /// The message is whole, or (broken) will never be.
    void arrived(Sink sink, bool broken) noexcept;

    [[nodiscard]] bool empty() const noexcept { return running_.empty(); }
    /// run() has more to do at once.
    [[nodiscard]] bool busy() const noexcept { return busy_; }
    /// run() waits for room in the send queue or the completion ring.
    [[nodiscard]] bool retry() const noexcept { return retry_; }

    /// Writes or reads what is left when no schedule is here.
    void fields(state::Archive& archive);

    /// The answer to a kOffload. False: no slot.
    static bool answer(abi::CompletionProducer& cq, std::uint32_t cookie, Err status) noexcept;

private:
    [[nodiscard]] Err judge_group(const abi::SubmissionRecord& record, std::uint64_t mask,
                                  const urtp::Transport* member);
    [[nodiscard]] Err fill(Offload& offload, const abi::OffloadRequest& request,
                           const std::byte* arrays, const Context& context);
    [[nodiscard]] Err pass_over(Offload& offload, const abi::OffloadRequest& request,
                                const Deliverer& deliverer);
    bool start(Offload& offload, SendQueue& sends);
    [[nodiscard]] bool report(const Offload& offload, abi::CompletionProducer& cq);
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

}  // namespace ulc::engine
