// SPDX-License-Identifier: BSD-3-Clause
#include "client/collective/schedule_run.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <span>
#include <utility>

#include "client/endpoint.h"
#include "client/error_text.h"

namespace ulc::client {
namespace {

using abi::Step;
using abi::StepKind;

/// The longest sleep before members are looked at and back-pressure is tried again.
constexpr Nanos kLookAgain = 100 * kMillisecond;

/// Times that test() follows up what it started itself; bounds its work.
constexpr unsigned kRoundsPerTest = 16;

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
    at_.ep = ep;
    schedule_ = schedule;
    at_.identity = identity;
    offload = offload && setup.members > 1;
    if (executor_.has_value()) {
        executor_->rewind();
        watch_ = {};
        error_ = ULC_OK;
    } else if (const int error = prepare(setup, offload); error != ULC_OK) {
        return error;
    }
    at_.group = group;
    at_.members = setup.members;
    if (!ep->collectives().checks) at_.identity.agreement = {};
    Operations& operations = ep->groups().find(group)->operations;
    if (operations.broken) {
        set_last_error(
            "%s: members of group 0x%08x gave different arguments before; make another group",
            at_.identity.name, group);
        return ULC_ERR_MISMATCH;
    }
    try {
        if (!operations.begin(at_.number, at_.identity.agreement)) {
            set_last_error(
                "%s: %zu operations of group 0x%08x began after one that is under way; "
                "finish that first",
                at_.identity.name, Operations::kAheadMax, group);
            return ULC_ERR_LIMIT;
        }
    } catch (const std::bad_alloc&) {
        return ULC_ERR_NO_MEMORY;
    }
    at_.tag = operation_tag(group, at_.number) | at_.identity.agreement.signature.bits();
    if (offload) hand_over(setup);
    if (!away_) static_cast<void>(start_ready());
    return ULC_OK;
}

// ---------------------------------------------------------------- offload

/// offload: becomes false if the schedule does not suit, or the arena has no space for scratch.
int ScheduleRun::prepare(exec::Setup& setup, bool& offload) noexcept {
    try {
        offload = offload && offload_.prepare(at_.ep, schedule_);
        if (!offload && schedule_.scratch_octets > 0)
            scratch_.reset(new unsigned char[schedule_.scratch_octets]);
        requests_.reset(new ulc_request[schedule_.step_count]);
        in_flight_.reset(new std::uint32_t[schedule_.step_count]);
    } catch (const std::bad_alloc&) {
        set_last_error("%s: no memory for the schedule", at_.identity.name);
        return ULC_ERR_NO_MEMORY;
    }
    setup.scratch = offload ? offload_.scratch() : scratch_.get();
    Result<exec::Executor> made = exec::Executor::make(schedule_, setup);
    if (made.ok()) executor_.emplace(std::move(made.value()));
    return static_cast<int>(made.error());
}

/// Gives the schedule to the engine, if it has space.
void ScheduleRun::hand_over(const exec::Setup& setup) noexcept {
    try {
        own_.assign(schedule_.step_count, kEngines);
        std::uint32_t unused = 0;
        do {  // copies that nothing comes before
            static_cast<void>(executor_->next(unused));
        } while (executor_->local_work_left());
        // Messages that have come leave the rings and the arena: no call looks at them while the
        // caller computes.
        at_.ep->poll_aside();
        take_early();
        static_cast<void>(take_finished());
        const bool half_here = in_flight_count_ > 0;
        if (error_ == ULC_OK && !(half_here && offload_.passes_on()))
            away_ = offload_.start(at_.group, schedule_, setup, {at_.tag, ~Signature::kMask}, own_);
        // An engine inside the application hears of it now, and has its helper go on.
        if (away_ && at_.ep->hooks().progress != nullptr) at_.ep->poll_aside();
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
            at_.ep->messages().peek(at_.rank_of(step.peer), at_.tag, ~Signature::kMask, &found) ==
                ULC_OK)
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

/// Takes the engine's result. The steps that it did are done here too, so that the copies after
/// them are made. True: something was started.
bool ScheduleRun::settle_offload() noexcept {
    if (offload_.running()) return false;
    away_ = false;
    if (offload_.refused()) return start_ready();
    if (offload_.status() == ULC_ERR_MISMATCH) {
        const char* unlike =
            at_.identity.agreement.signature.unlike(Signature::of_tag(offload_.found_tag()));
        mismatch(offload_.source(), unlike != nullptr ? unlike : "gave another length");
    } else if (offload_.status() != ULC_OK) {
        fail(offload_.status());
    }
    if (error_ != ULC_OK) return false;
    for (const std::uint16_t source : offload_.passed()) {
        for (std::uint32_t i = 0; i < schedule_.step_count; ++i) {
            const Step& step = schedule_.steps[i];
            if (step.kind != StepKind::kRecv || own_[i] != kEngines ||
                at_.rank_of(step.peer) != source)
                continue;
            receive_here(i);
            break;
        }
    }
    offload_.copy_out(schedule_, own_);
    std::ranges::replace(own_, std::uint8_t{kEngines}, std::uint8_t{kHere});
    return start_ready();
}

int ScheduleRun::freed() const noexcept {
    set_last_error("%s: group 0x%08x was freed while the operation was under way; finish it first",
                   at_.identity.name, at_.group);
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
    const std::uint16_t peer = at_.rank_of(step.peer);
    if (peer == ULC_RANK_ANY) return freed();
    switch (step.kind) {
        case StepKind::kSend:
        case StepKind::kMcast: {
            const unsigned char* from = executor_->source(step);
            if (from == nullptr && step.length > 0) break;
            const Pieces payload = Pieces::one(from, step.length);
            return step.kind == StepKind::kSend
                       ? at_.ep->messages().send(peer, tag_of(index), payload, 0, request)
                       : at_.ep->messages().multicast(at_.group, step.from_offset, tag_of(index),
                                                      payload, 0, request);
        }
        case StepKind::kRecv: {
            unsigned char* to = executor_->destination(step);
            if (to == nullptr && step.length > 0) break;
            return at_.ep->messages().receive(peer, at_.tag, ~Signature::kMask,
                                              Pieces::one(to, step.length), request);
        }
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
        const int state = ulc_test(at_.ep, &requests_[index], &status);
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

/// Returns the tag of the message that the step sends.
std::uint64_t ScheduleRun::tag_of(std::uint32_t step) const noexcept {
    return at_.checks() && executor_->is_last(step) ? at_.tag | abi::kTagLast : at_.tag;
}

/// A message of the operation has come: from a member that means the same?
void ScheduleRun::judge_receive(std::uint32_t step, const ulc_status& status) noexcept {
    const Signature theirs = Signature::of_tag(status.tag);
    const char* unlike = at_.identity.agreement.signature.unlike(theirs);
    const bool other_count = at_.checks() && theirs.bits() != 0 &&
                             ((status.tag & abi::kTagLast) != 0) != executor_->is_last(step);
    if (unlike == nullptr && (status.length != executor_->step(step).length || other_count))
        unlike = "gave another length";
    if (unlike != nullptr) {
        mismatch(status.source, unlike);
    } else {
        if (!own_.empty()) own_[step] = kHere;
        // It was under way, so this cannot be refused; unless it was taken early, which
        // start_ready() sees.
        static_cast<void>(executor_->complete(step));
    }
}

void ScheduleRun::mismatch(std::uint16_t rank, const char* what) noexcept {
    if (what == Signature::kToldOf) watch_.told();
    if (error_ == ULC_OK) {
        set_last_error(
            "%s, number %u of group 0x%08x: rank %u %s; the group cannot be used any more",
            at_.identity.name, at_.number, at_.group, unsigned{rank}, what);
    }
    fail(ULC_ERR_MISMATCH);
}

void ScheduleRun::look_at_members() noexcept {
    const MemberWatch::Finding found = watch_.look(at_);
    if (found.error == ULC_ERR_MISMATCH) {
        mismatch(found.rank, found.what);
    } else if (found.error != ULC_OK) {
        fail(found.error == ULC_ERR_INVALID ? freed() : found.error);
    }
    if (error_ == ULC_OK)
        watch_.ask(at_, schedule_, std::span(in_flight_.get(), in_flight_count_), away_);
}

/// The operation is over, well or not.
void ScheduleRun::end() noexcept {
    if (client::Group* group = at_.ep->groups().find(at_.group); group != nullptr) {
        group->operations.end(at_.number);
        if (error_ == ULC_ERR_MISMATCH) group->operations.broken = true;
    }
}

/// Keeps the first error, takes back receives. Those that have matched, and sends, end by
/// themselves: the caller's memory is in use until then.
void ScheduleRun::fail(int error) noexcept {
    // A member that gives up because another died leaves: to the rest, the death is the reason.
    if (error == ULC_ERR_PEER_LEFT && MemberWatch::somebody_died(at_)) error = ULC_ERR_PEER_DIED;
    if (error_ == ULC_OK) error_ = error;
    for (std::uint32_t i = 0; i < in_flight_count_;) {
        const std::uint32_t index = in_flight_[i];
        const bool receive = executor_->step(index).kind == StepKind::kRecv;
        if (receive && ulc_cancel(at_.ep, &requests_[index]) == ULC_OK) {
            in_flight_[i] = in_flight_[--in_flight_count_];
        } else {
            ++i;
        }
    }
}

int ScheduleRun::test() noexcept {
    // A request may be done as soon as it is started (a send that fits its record, a receive whose
    // message waits), without an event. So look again after starting.
    bool moved = false;
    bool started = true;
    for (unsigned round = 0; started && round < kRoundsPerTest; ++round) {
        moved = take_finished() || moved;
        started = error_ == ULC_OK && (away_ ? settle_offload() : start_ready());
    }
    look_again_ = started;
    if (moved) watch_.moved();
    if (error_ == ULC_OK && !moved && !executor_->done()) look_at_members();
    const bool told = error_ != ULC_ERR_MISMATCH || watch_.tell_all(at_);
    const bool failed = error_ != ULC_OK && told && offload_.cancel() && !offload_.running() &&
                        in_flight_count_ == 0;
    if (!failed && (error_ != ULC_OK || !executor_->done())) return ULC_ERR_AGAIN;
    end();
    at_.ep->waiter.before_leaving(true);
    return error_;
}

int ScheduleRun::wait(std::int64_t timeout_ns) noexcept {
    const Hooks& hooks = at_.ep->hooks();
    const bool forever = timeout_ns == ULC_WAIT_FOREVER || hooks.now == nullptr;
    const Nanos begin = forever ? 0 : hooks.now(hooks.context);
    for (;;) {
        const int state = test();
        if (state != ULC_ERR_AGAIN) return state;
        const Nanos waited = forever ? 0 : hooks.now(hooks.context) - begin;
        if (!forever && waited >= timeout_ns) return ULC_ERR_AGAIN;
        if (busy()) {
            ulc_poll(at_.ep);
            continue;
        }
        // An ended endpoint ends every request, which the next test() sees.
        static_cast<void>(
            ulc_wait(at_.ep, forever ? kLookAgain : std::min(kLookAgain, timeout_ns - waited)));
    }
}

}  // namespace ulc::client
