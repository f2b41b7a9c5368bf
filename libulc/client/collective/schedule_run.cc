#include "client/collective/schedule_run.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "client/endpoint.h"
#include "client/error_text.h"
#include "client/ulc_internal.h"

namespace ulc::client {
namespace {

using abi::Step;
using abi::StepKind;

/// The longest sleep before members are looked at and back-pressure is tried again.
constexpr Nanos kLookAgain = 100 * kMillisecond;

/// Times that test() follows up what it started itself; bounds its work.
constexpr unsigned kRoundsPerTest = 16;

/// Members that are looked at in one test() that nothing moved.
constexpr unsigned kLooksPerTest = 16;

/// In patiences: the longest time between inquiries.
constexpr Nanos kAskEveryMax = 8;

/// Of a tag: the number.
constexpr std::uint64_t kNumberMask = ((std::uint64_t{1} << Operations::kNumberBits) - 1)
                                      << Signature::kBits;

/// Tag of an operation: bit 63 (coll/), 31 bits of the handle (its top bit is the same in all), 12 of the number, 19 of the
/// signature.
[[nodiscard]] std::uint64_t operation_tag(ulc_group group, std::uint32_t number) noexcept {
    constexpr std::uint64_t kHandle = (std::uint64_t{1} << 31) - 1;
    static_assert(31 + Operations::kNumberBits + Signature::kBits == 62);
    return ULC_TAG_COLL | (group & kHandle) << (Operations::kNumberBits + Signature::kBits) |
           ((std::uint64_t{number} << Signature::kBits) & kNumberMask);
}

}  // namespace

int ScheduleRun::start(ulc_endpoint* ep, ulc_group group, const abi::Schedule& schedule,
                       const RunMemory& memory, const RunIdentity& identity,
                       bool offload) noexcept {
    const std::uint16_t self = ulc_group_index(ep, group);
    if (self == ULC_RANK_ANY) return ULC_ERR_INVALID;
    exec::Setup setup;
    setup.members = ulc_group_size(ep, group);
    setup.self = self;
    setup.input = static_cast<const unsigned char*>(memory.input);
    setup.output = static_cast<unsigned char*>(memory.output);
    setup.octets[0] = memory.input_octets;
    setup.octets[1] = memory.output_octets;
    setup.octets[2] = schedule.scratch_octets;
    setup.reduce = memory.reduce;
    ep_ = ep;
    schedule_ = schedule;
    identity_ = identity;
    offload = offload && setup.members > 1;
    if (!prepare_scratch(offload, setup)) {
        set_last_error("%s: no memory for the schedule", identity_.name);
        return ULC_ERR_NO_MEMORY;
    }
    Result<exec::Executor> made = exec::Executor::make(schedule, setup);
    if (!made.ok()) return static_cast<int>(made.error());
    executor_.emplace(std::move(made.value()));

    requests_.reset(new (std::nothrow) ulc_request[schedule.step_count]);
    in_flight_.reset(new (std::nothrow) std::uint32_t[schedule.step_count]);
    if (!requests_ || !in_flight_) return ULC_ERR_NO_MEMORY;
    group_ = group;
    members_ = setup.members;
    if (!ep->checks_collectives()) identity_.agreement = {};
    Operations& operations = ep->group(group)->operations;
    if (operations.broken) {
        set_last_error(
            "%s: members of group 0x%08x gave different arguments before; make another group",
            identity_.name, group);
        return ULC_ERR_MISMATCH;
    }
    try {
        if (!operations.begin(number_, identity_.agreement)) {
            set_last_error(
                "%s: %zu operations of group 0x%08x began after one that is under way; "
                "finish that first",
                identity_.name, Operations::kAheadMax, group);
            return ULC_ERR_LIMIT;
        }
    } catch (const std::bad_alloc&) {
        return ULC_ERR_NO_MEMORY;
    }
    tag_ = operation_tag(group, number_) | identity_.agreement.signature.bits();
    if (offload) hand_over(setup);
    if (!away_) static_cast<void>(start_ready());
    return ULC_OK;
}

// ---------------------------------------------------------------- offload

/// False: no memory. offload: becomes false where the schedule does not suit, or the arena has no room for its scratch.
bool ScheduleRun::prepare_scratch(bool& offload, exec::Setup& setup) noexcept {
    try {
        offload = offload && offload_.prepare(ep_, schedule_);
        if (!offload && schedule_.scratch_octets > 0)
            scratch_.reset(new unsigned char[schedule_.scratch_octets]);
    } catch (const std::bad_alloc&) {
        return false;
    }
    setup.scratch = offload ? offload_.scratch() : scratch_.get();
    return true;
}

/// To the engine, if there is room.
void ScheduleRun::hand_over(const exec::Setup& setup) noexcept {
    try {
        own_.assign(schedule_.step_count, kEngines);
        std::uint32_t unused = 0;
        do {  // copies that nothing comes before
            static_cast<void>(executor_->next(unused));
        } while (executor_->local_work_left());
        ep_->poll_aside();  // what has come leaves the rings and the arena, which nobody looks at while the caller computes
        take_early();
        static_cast<void>(take_finished());
        const bool half_here = in_flight_count_ > 0;
        if (error_ == ULC_OK && !(half_here && offload_.passes_on()))
            away_ = offload_.start(group_, schedule_, setup, {tag_, ~Signature::kMask}, own_);
        // An engine inside the application hears of it now, and has its helper go on.
        if (away_ && ep_->hooks().progress != nullptr) ep_->poll_aside();
    } catch (const std::bad_alloc&) {
        // Carried out here: what was taken early is found there too.
    }
}

/// Receives of what has come already.
void ScheduleRun::take_early() noexcept {
    for (std::uint32_t i = 0; i < schedule_.step_count && error_ == ULC_OK; ++i) {
        const Step& step = schedule_.steps[i];
        std::uint64_t found = 0;
        if (step.kind == StepKind::kRecv &&
            ulc_internal_peek(ep_, rank_of(step.peer), tag_, ~Signature::kMask, &found) == ULC_OK)
            receive_here(i);
    }
}

/// The step's message is with the client, or on its way.
void ScheduleRun::receive_here(std::uint32_t index) noexcept {
    if (const int error = start_step(index); error != ULC_OK) {
        fail(error);
        return;
    }
    own_[index] = kPosted;
    in_flight_[in_flight_count_++] = index;
}

/// What the engine said. What it did is done here too, so that the copies after it are made. True: something was started.
bool ScheduleRun::settle_offload() noexcept {
    if (offload_.running()) return false;
    away_ = false;
    if (offload_.refused()) return start_ready();
    if (offload_.status() == ULC_ERR_MISMATCH) {
        const char* unlike =
            identity_.agreement.signature.unlike(Signature::of_tag(offload_.found_tag()));
        mismatch(offload_.source(), unlike != nullptr ? unlike : "gave another length");
    } else if (offload_.status() != ULC_OK) {
        fail(offload_.status());
    }
    if (error_ != ULC_OK) return false;
    for (const std::uint16_t source : offload_.passed()) {
        for (std::uint32_t i = 0; i < schedule_.step_count; ++i) {
            const Step& step = schedule_.steps[i];
            if (step.kind != StepKind::kRecv || own_[i] != kEngines || rank_of(step.peer) != source)
                continue;
            receive_here(i);
            break;
        }
    }
    offload_.copy_out(schedule_, own_);
    std::ranges::replace(own_, std::uint8_t{kEngines}, std::uint8_t{kHere});
    return start_ready();
}

/// ULC_RANK_ANY: the group was freed meanwhile.
std::uint16_t ScheduleRun::rank_of(std::uint16_t index) const noexcept {
    return ulc_group_rank(ep_, group_, index);
}

int ScheduleRun::freed() const noexcept {
    set_last_error("%s: group 0x%08x was freed while the operation was under way; finish it first",
                   identity_.name, group_);
    return ULC_ERR_INVALID;
}

/// Hands out what may start, as far as the endpoint takes it. True: something was started.
bool ScheduleRun::start_ready() noexcept {
    bool any = false;
    std::uint32_t index = 0;
    while (error_ == ULC_OK && executor_->next(index)) {
        if (!own_.empty() && own_[index] != kEngines) {
            executor_->started();
            if (own_[index] == kHere) static_cast<void>(executor_->complete(index));
            any = true;
            continue;
        }
        const int error = start_step(index);
        if (error == ULC_ERR_AGAIN) break;
        if (error != ULC_OK) {
            fail(error);
            break;
        }
        executor_->started();
        in_flight_[in_flight_count_++] = index;
        any = true;
    }
    return any;
}

int ScheduleRun::start_step(std::uint32_t index) noexcept {
    const Step& step = executor_->step(index);
    ulc_request* request = &requests_[index];
    const std::uint16_t peer = rank_of(step.peer);
    if (peer == ULC_RANK_ANY) return freed();
    switch (step.kind) {
        case StepKind::kSend:
            return ulc_internal_send(ep_, peer, tag_of(index), executor_->source(step), step.length,
                                     request);
        case StepKind::kMcast:
            return ulc_internal_multicast(ep_, group_, step.from_offset, tag_of(index),
                                          executor_->source(step), step.length, request);
        case StepKind::kRecv:
            return ulc_internal_receive(ep_, peer, tag_, ~Signature::kMask,
                                        executor_->destination(step), step.length, request);
        case StepKind::kCopy:
        case StepKind::kReduce:
            break;  // done inside the executor
    }
    return ULC_ERR_INVALID;
}

/// Takes what has ended. True: something did.
bool ScheduleRun::take_finished() noexcept {
    bool any = false;
    for (std::uint32_t i = 0; i < in_flight_count_;) {
        const std::uint32_t index = in_flight_[i];
        ulc_status status{};
        const int state = ulc_test(ep_, &requests_[index], &status);
        if (state == ULC_ERR_AGAIN) {
            ++i;
            continue;
        }
        any = true;
        in_flight_[i] = in_flight_[--in_flight_count_];
        const int error = state != ULC_OK ? state : status.error;
        if (executor_->step(index).kind == StepKind::kRecv &&
            (error == ULC_OK || error == ULC_ERR_TRUNCATED)) {
            judge_receive(index, status);
            continue;
        }
        if (error != ULC_OK) {
            fail(error);
        } else {
            // It was under way, so this cannot be refused.
            static_cast<void>(executor_->complete(index));
        }
    }
    return any;
}

/// Of a message that the step sends.
std::uint64_t ScheduleRun::tag_of(std::uint32_t step) const noexcept {
    return checks() && executor_->is_last(step) ? tag_ | abi::kTagLast : tag_;
}

/// A message of the operation has come: from a member that means the same?
void ScheduleRun::judge_receive(std::uint32_t step, const ulc_status& status) noexcept {
    const Signature theirs = Signature::of_tag(status.tag);
    const char* unlike = identity_.agreement.signature.unlike(theirs);
    const bool other_count = checks() && theirs.bits() != 0 &&
                             ((status.tag & abi::kTagLast) != 0) != executor_->is_last(step);
    if (unlike == nullptr && (status.length != executor_->step(step).length || other_count))
        unlike = "gave another length";
    if (unlike != nullptr) {
        mismatch(status.source, unlike);
    } else {
        if (!own_.empty()) own_[step] = kHere;
        // It was under way, so this cannot be refused; unless it was taken early, which start_ready() sees.
        static_cast<void>(executor_->complete(step));
    }
}

void ScheduleRun::mismatch(std::uint16_t rank, const char* what) noexcept {
    // Who was told need not tell.
    told_ = told_ || what == Signature::kToldOf;
    if (error_ == ULC_OK) {
        set_last_error(
            "%s, number %u of group 0x%08x: rank %u %s; the group cannot be used any more",
            identity_.name, number_, group_, unsigned{rank}, what);
    }
    fail(ULC_ERR_MISMATCH);
}

/// Nothing moves. Why not? A member that died will never send, or never let another member send; one that left may have done
/// its part, and a receive that names it fails by itself. And one that was given other arguments may have sent what nobody asks
/// for, and wait for what nobody sends.
void ScheduleRun::look_at_members() noexcept {
    // Of any operation of the group: none after that one can go well.
    const std::uint64_t broken = (tag_ & ~Signature::kMask) | Signature::broken().bits();
    const client::Group* group = ep_->group(group_);
    if (group != nullptr && group->operations.disagreement.what != nullptr &&
        group->operations.disagreement.number == number_)
        mismatch(group->operations.disagreement.rank, group->operations.disagreement.what);
    for (unsigned looks = 0; looks < kLooksPerTest && looks < members_ && error_ == ULC_OK;
         ++looks) {
        const std::uint16_t rank = rank_of(looked_at_);
        looked_at_ = static_cast<std::uint16_t>(looked_at_ + 1 < members_ ? looked_at_ + 1 : 0);
        if (rank == ULC_RANK_ANY) fail(freed());
        if (rank == ulc_rank(ep_) || rank == ULC_RANK_ANY) continue;
        if (ulc_peer_state(ep_, rank) == ULC_ERR_PEER_DIED) fail(ULC_ERR_PEER_DIED);
        std::uint64_t found = 0;
        if (ulc_internal_peek(ep_, rank, broken, ~kNumberMask, &found) != ULC_OK &&
            ulc_internal_peek(ep_, rank, tag_, ~Signature::kMask, &found) != ULC_OK) {
            if (left_over(rank))
                mismatch(rank, "gave another root, operation or algorithm in the one before");
            continue;
        }
        const char* unlike = identity_.agreement.signature.unlike(Signature::of_tag(found));
        if (unlike != nullptr) mismatch(rank, unlike);
    }
}

/// Nothing has moved for long: what do those say that this operation waits for? The time is not looked at before the second test
/// in which nothing moved.
void ScheduleRun::ask_members() noexcept {
    const Nanos patience = ep_->collective_patience();
    if (patience == kNever || ++quiet_ == 1) return;
    const Nanos now = ep_->hooks().now(ep_->hooks().context);
    if (quiet_ == 2) {
        ask_again_after_ = patience;
        ask_at_ = now + patience;
        asked_ = 0;
    }
    if (now < ask_at_ || !ask_sources()) return;
    asked_ = 0;
    ask_again_after_ = std::min(2 * ask_again_after_, kAskEveryMax * patience);
    ask_at_ = now + ask_again_after_;
}

/// False: no room for all; to be called again.
bool ScheduleRun::ask_sources() noexcept {
    // Which messages the engine awaits is not known here, so all are asked from whom one is to come.
    const std::uint32_t count = away_ ? schedule_.step_count : in_flight_count_;
    for (std::uint16_t last = ULC_RANK_ANY; asked_ < count; ++asked_) {
        const std::uint32_t index = away_ ? asked_ : in_flight_[asked_];
        const Step& step = away_ ? schedule_.steps[index] : executor_->step(index);
        const std::uint16_t rank = rank_of(step.peer);
        if (step.kind != StepKind::kRecv || rank == last || rank == ULC_RANK_ANY) continue;
        if (!ep_->ask_about(rank, group_, number_, identity_.agreement)) return false;
        last = rank;
    }
    return true;
}

/// Has the member sent, to the operation before, what nobody here asked for? That one is over here, so nobody will. Only the first of
/// what it sent to the group counts: numbers begin again, and it may be far ahead.
bool ScheduleRun::left_over(std::uint16_t rank) const noexcept {
    if (!ep_->group(group_)->operations.ended_before(number_)) return false;
    std::uint64_t found = 0;
    return checks() &&
           ulc_internal_peek(ep_, rank, tag_, ~(kNumberMask | Signature::kMask), &found) ==
               ULC_OK &&
           ((found ^ operation_tag(group_, number_ - 1)) & kNumberMask) == 0 &&
           Signature::of_tag(found).bits() != 0;
}

bool ScheduleRun::somebody_died() const noexcept {
    for (std::uint16_t index = 0; index < members_; ++index) {
        const std::uint16_t rank = rank_of(index);
        if (rank != ULC_RANK_ANY && ulc_peer_state(ep_, rank) == ULC_ERR_PEER_DIED) return true;
    }
    return false;
}

/// After a mismatch, the others hear of it, as soon as there is room. False: not yet.
bool ScheduleRun::told_all() noexcept {
    if (error_ != ULC_ERR_MISMATCH || told_ || members_ < 2 || !checks()) return true;
    const std::uint64_t tag = (tag_ & ~Signature::kMask) | Signature::broken().bits();
    told_ = ulc_internal_multicast(ep_, group_, ULC_SUBSET_ALL, tag, nullptr, 0, nullptr) !=
            ULC_ERR_AGAIN;
    return told_;
}

/// The operation is over, well or not.
void ScheduleRun::end() noexcept {
    if (client::Group* group = ep_->group(group_); group != nullptr) {
        group->operations.end(number_);
        if (error_ == ULC_ERR_MISMATCH) group->operations.broken = true;
    }
}

/// Keeps the first error, takes back receives. Those that have matched, and sends, end by themselves: the caller's
/// memory is in use until then.
void ScheduleRun::fail(int error) noexcept {
    // Whoever gives up because another member died leaves: to the rest, the death is the reason.
    if (error == ULC_ERR_PEER_LEFT && somebody_died()) error = ULC_ERR_PEER_DIED;
    if (error_ == ULC_OK) error_ = error;
    for (std::uint32_t i = 0; i < in_flight_count_;) {
        const std::uint32_t index = in_flight_[i];
        const bool receive = executor_->step(index).kind == StepKind::kRecv;
        if (receive && ulc_cancel(ep_, &requests_[index]) == ULC_OK) {
            in_flight_[i] = in_flight_[--in_flight_count_];
        } else {
            ++i;
        }
    }
}

int ScheduleRun::test() noexcept {
    // What is started may be done at once (a send that fits its record, a receive whose message waits), and no event
    // will tell: so look again after starting.
    bool moved = false;
    bool started = true;
    for (unsigned round = 0; started && round < kRoundsPerTest; ++round) {
        moved = take_finished() || moved;
        started = error_ == ULC_OK && (away_ ? settle_offload() : start_ready());
    }
    look_again_ = started;
    if (moved) quiet_ = 0;
    if (error_ == ULC_OK && !moved && !executor_->done()) look_at_members();
    if (error_ == ULC_OK && !moved && !executor_->done()) ask_members();
    const bool failed = error_ != ULC_OK && told_all() && offload_.cancel() &&
                        !offload_.running() && in_flight_count_ == 0;
    if (!failed && (error_ != ULC_OK || !executor_->done())) return ULC_ERR_AGAIN;
    end();
    ep_->before_leaving(true);
    return error_;
}

int ScheduleRun::wait(std::int64_t timeout_ns) noexcept {
    const Hooks& hooks = ep_->hooks();
    const bool forever = timeout_ns == ULC_WAIT_FOREVER || hooks.now == nullptr;
    const Nanos begin = forever ? 0 : hooks.now(hooks.context);
    for (;;) {
        const int state = test();
        if (state != ULC_ERR_AGAIN) return state;
        const Nanos waited = forever ? 0 : hooks.now(hooks.context) - begin;
        if (!forever && waited >= timeout_ns) return ULC_ERR_AGAIN;
        if (busy()) {
            ulc_poll(ep_);
            continue;
        }
        // An ended endpoint ends every request, which the next test() sees.
        static_cast<void>(
            ulc_wait(ep_, forever ? kLookAgain : std::min(kLookAgain, timeout_ns - waited)));
    }
}

}  // namespace ulc::client
