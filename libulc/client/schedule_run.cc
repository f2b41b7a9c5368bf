#include "client/schedule_run.h"

#include <algorithm>
#include <new>
#include <utility>

#include "client/endpoint.h"
#include "client/ulc_internal.h"

namespace ulc::client {
namespace {

using abi::Step;
using abi::StepKind;

/// The longest sleep before members are looked at and back-pressure is tried again.
constexpr Nanos kLookAgain = 100 * kMillisecond;

/// Times that test() follows up what it started itself; bounds its work.
constexpr unsigned kRoundsPerTest = 16;

/// Tag of an operation: bit 63 (coll/), 31 bits of the handle (its top bit is the same in all), 31 of the number.
[[nodiscard]] std::uint64_t operation_tag(ulc_group group, std::uint32_t number) noexcept {
    constexpr std::uint64_t kBits31 = (std::uint64_t{1} << 31) - 1;
    return ULC_TAG_COLL | (group & kBits31) << 31 | (number & kBits31);
}

}  // namespace

int ScheduleRun::start(ulc_endpoint* ep, ulc_group group, const abi::Schedule& schedule,
                       const RunMemory& memory) noexcept {
    const std::uint16_t self = ulc_group_index(ep, group);
    if (self == ULC_RANK_ANY) return ULC_ERR_INVALID;
    exec::Setup setup;
    setup.members = ulc_group_size(ep, group);
    setup.self = self;
    setup.input = static_cast<const unsigned char*>(memory.input);
    setup.output = static_cast<unsigned char*>(memory.output);
    setup.scratch = static_cast<unsigned char*>(memory.scratch);
    setup.octets[0] = memory.input_octets;
    setup.octets[1] = memory.output_octets;
    setup.octets[2] = memory.scratch_octets;
    setup.reduce = memory.reduce;
    Result<exec::Executor> made = exec::Executor::make(schedule, setup);
    if (!made.ok()) return static_cast<int>(made.error());
    executor_.emplace(std::move(made.value()));

    requests_.reset(new (std::nothrow) ulc_request[schedule.step_count]);
    in_flight_.reset(new (std::nothrow) std::uint32_t[schedule.step_count]);
    if (!requests_ || !in_flight_) return ULC_ERR_NO_MEMORY;
    ep_ = ep;
    group_ = group;
    members_ = setup.members;
    std::uint32_t number = 0;
    if (const int error = ulc_internal_next_operation(ep, group, &number); error != ULC_OK) {
        return error;
    }
    tag_ = operation_tag(group, number);
    static_cast<void>(start_ready());
    return ULC_OK;
}

/// Hands out what may start, as far as the endpoint takes it. True: something was started.
bool ScheduleRun::start_ready() noexcept {
    bool any = false;
    std::uint32_t index = 0;
    while (error_ == ULC_OK && executor_->next(index)) {
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
    switch (step.kind) {
        case StepKind::kSend:
            return ulc_internal_send(ep_, ulc_group_rank(ep_, group_, step.peer), tag_,
                                     executor_->source(step), step.length, request);
        case StepKind::kMcast:
            return ulc_internal_multicast(ep_, group_, step.from_offset, tag_,
                                          executor_->source(step), step.length, request);
        case StepKind::kRecv:
            return ulc_internal_receive(ep_, ulc_group_rank(ep_, group_, step.peer), tag_,
                                        UINT64_MAX, executor_->destination(step), step.length,
                                        request);
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
        int error = state != ULC_OK ? state : status.error;
        const Step& step = executor_->step(index);
        const bool cut = error == ULC_ERR_TRUNCATED;
        if (step.kind == StepKind::kRecv &&
            (cut || (error == ULC_OK && status.length != step.length))) {
            error = ULC_ERR_MISMATCH;
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

/// A member that died will never send, or never let another member send; one that left may have done its part, and
/// a receive that names it fails by itself. One member a call keeps this cheap.
void ScheduleRun::look_at_one_member() noexcept {
    const std::uint16_t rank = ulc_group_rank(ep_, group_, looked_at_);
    looked_at_ = static_cast<std::uint16_t>(looked_at_ + 1 < members_ ? looked_at_ + 1 : 0);
    if (rank != ulc_rank(ep_) && ulc_peer_state(ep_, rank) == ULC_ERR_PEER_DIED) {
        fail(ULC_ERR_PEER_DIED);
    }
}

/// Keeps the first error, takes back receives. Those that have matched, and sends, end by themselves: the caller's
/// memory is in use until then.
void ScheduleRun::fail(int error) noexcept {
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
        started = error_ == ULC_OK && start_ready();
    }
    look_again_ = started;
    if (error_ == ULC_OK && executor_->done()) return ULC_OK;
    if (error_ == ULC_OK && !moved) look_at_one_member();
    if (error_ != ULC_OK && in_flight_count_ == 0) return error_;
    return ULC_ERR_AGAIN;
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
