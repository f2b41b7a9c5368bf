// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/express/express_run.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "express/fibers.h"

namespace ulc::sim {
namespace {

constexpr unsigned kBarrierTag = 0xffff;  ///< with the round above it
constexpr unsigned kRoundShift = 16;

}  // namespace

/// An operation of a thread. Its end lets the server run.
class ExpressProcess::Call {
public:
    explicit Call(ExpressProcess& process) : process_(process) { process_.scheduler_->enter(); }
    ~Call() {
        if (!process_.scheduler_->is_server()) process_.scheduler_->reconsider();
        process_.scheduler_->leave();
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

private:
    ExpressProcess& process_;
};

ExpressProcess::ExpressProcess(ExpressRun& run, std::uint16_t rank)
    : run_(run),
      rank_(rank),
      switch_(express::fiber_switch()),
      entered_(std::bit_width(unsigned{run.processes()})) {
    outside_ = switch_.make(switch_.self, nullptr, nullptr);
    root_ = switch_.make(
        switch_.self, [](void* self) { static_cast<ExpressProcess*>(self)->begin(); }, this);
    inside_ = switch_.make(switch_.self, nullptr, nullptr);
    ULC_CHECK(outside_ != nullptr && root_ != nullptr && inside_ != nullptr);
}

ExpressProcess::~ExpressProcess() {
    scheduler_.reset();
    for (void* context : {outside_, root_, inside_})
        switch_.drop(switch_.self, context);
}

std::uint16_t ExpressProcess::processes() const noexcept { return run_.processes(); }
ulc_endpoint* ExpressProcess::endpoint() noexcept { return run_.lib_.endpoint(rank_); }

// ---------------------------------------------------------------- stacks and time

/// Runs on the first stack.
void ExpressProcess::begin() {
    const express::Surroundings around{
        this, [](void* self) { return static_cast<ExpressProcess*>(self)->now_; },
        [](void* self) { return static_cast<ExpressProcess*>(self)->may_compute(); },
        [](void* self, Nanos until) { static_cast<ExpressProcess*>(self)->idle(until); }};
    scheduler_ = std::make_unique<express::Scheduler>(switch_, around);
    ULC_CHECK(
        scheduler_->start([](void* self) { static_cast<ExpressProcess*>(self)->serve(); }, this));
    (*run_.main_)(*this);
    leave_stack(Rest::kEnded);
    ULC_CHECK(false);  // nothing jumps back
}

/// Goes to the simulator, which jumps back in act().
void ExpressProcess::leave_stack(Rest rest) {
    rest_ = rest;
    switch_.jump(switch_.self, inside_, outside_, false);
    rest_ = Rest::kNone;
}

/// Returns when the process has to be called at the latest.
Nanos ExpressProcess::act(Nanos now) {
    now_ = now;
    flush();
    switch (rest_) {
        case Rest::kEnded:
            return kNever;
        case Rest::kNone:
            switch_.jump(switch_.self, outside_, root_, false);
            break;
        case Rest::kComputes:
            if (now < until_ && !(run_.rules_.interrupts && look())) return until_;
            switch_.jump(switch_.self, outside_, inside_, false);
            break;
        case Rest::kIdles:
            if (now < until_ && !look()) return until_;
            switch_.jump(switch_.self, outside_, inside_, false);
            break;
    }
    return rest_ == Rest::kEnded ? kNever : until_;
}

void ExpressProcess::spend(Nanos time) { run_.cluster().charge(rank_, time); }

// The time that the engine and handlers take of the processor meanwhile is added at the end.
void ExpressProcess::compute(Nanos time) {
    until_ = now_ + time;
    Nanos busy = run_.cluster().busy(rank_);
    for (Nanos end = until_;;) {
        while (now_ < end) {
            until_ = end;
            leave_stack(Rest::kComputes);
            if (!run_.rules_.interrupts || !look()) continue;
            spend(run_.rules_.upcall);
            in_upcall_ = true;
            ULC_CHECK(scheduler_->on_upcall());
            in_upcall_ = false;
        }
        const Nanos spent = run_.cluster().busy(rank_);
        end = now_ + spent - busy;
        if (spent == busy) return;
        busy = spent;
    }
}

// ---------------------------------------------------------------- messages

unsigned ExpressProcess::add_handler(Handler handler) {
    handlers_.push_back(std::move(handler));
    return static_cast<unsigned>(handlers_.size() - 1);
}

bool ExpressProcess::submit(const Unsent& message) {
    const int error = ulc_send(endpoint(), message.to, message.handler, message.message.data(),
                               message.message.size(), nullptr);
    ULC_CHECK(error == ULC_OK || error == ULC_ERR_AGAIN);
    return error == ULC_OK;
}

void ExpressProcess::flush() {
    while (!unsent_.empty() && submit(unsent_.front()))
        unsent_.pop_front();
}

void ExpressProcess::send(std::uint16_t to, unsigned handler, std::span<const std::byte> message) {
    const Call call(*this);
    unsent_.push_back({to, handler, {message.begin(), message.end()}});
    flush();
}

/// True if the server has a message, which it has not released yet. Announcements of barriers are
/// taken on the way.
bool ExpressProcess::look() {
    while (work_.view == nullptr) {
        ulc_status status{};
        const void* view = nullptr;
        const int error = ulc_take(endpoint(), ULC_RANK_ANY, 0, 0, &view, &status);
        if (error == ULC_ERR_AGAIN) return false;
        ULC_CHECK(error == ULC_OK);
        work_ = {view, status.length, status.source, static_cast<unsigned>(status.tag)};
    }
    return true;
}

bool ExpressProcess::wakes_server() {
    if (!look()) return false;
    scheduler_->wake_server();
    return true;
}

bool ExpressProcess::may_compute() {
    if (in_upcall_ || scheduler_->server_is_busy()) return true;
    return !wakes_server();
}

void ExpressProcess::idle(Nanos until) {
    ULC_CHECK(!in_upcall_);
    const auto has_work = [this] { return !scheduler_->server_is_busy() && look(); };
    if (!has_work()) {
        until_ = until;
        leave_stack(Rest::kIdles);
    }
    if (has_work()) scheduler_->wake_server();
}

void ExpressProcess::serve() {
    for (;;) {
        while (look())
            serve_one();
        scheduler_->await_work();
    }
}

void ExpressProcess::serve_one() {
    const ExpressRules& rules = run_.rules_;
    ++handled_[in_upcall_ ? 1 : 0];
    if (rules.crosses_always && !in_upcall_) spend(rules.upcall);
    spend(static_cast<Nanos>(rules.copy_octet * static_cast<double>(work_.length)));
    if ((work_.handler & kBarrierTag) == kBarrierTag) {
        scheduler_->enter();
        ++entered_[work_.handler >> kRoundShift];
        scheduler_->wake_all(changed_);
        scheduler_->leave();
    } else {
        ULC_CHECK(work_.handler < handlers_.size());
        handlers_[work_.handler](work_.source,
                                 {static_cast<const std::byte*>(work_.view), work_.length});
    }
    scheduler_->enter();
    ulc_release(endpoint(), work_.view);
    work_.view = nullptr;
    scheduler_->leave();
}

void ExpressProcess::barrier() {
    ++barriers_;
    for (unsigned round = 0; 1U << round < processes(); ++round) {
        send(static_cast<std::uint16_t>((rank_ + (1U << round)) % processes()),
             kBarrierTag | round << kRoundShift, {});
        const auto has_come = [&] { return entered_[round] >= barriers_; };
        while (!has_come()) {
            const Call call(*this);
            if (!has_come()) scheduler_->block_in(changed_);
        }
    }
}

// ---------------------------------------------------------------- all processes

ExpressRun::ExpressRun(const ClusterConfig& config, const ExpressRules& rules)
    : lib_(config), rules_(rules) {}

bool ExpressRun::run(const Main& main, Nanos limit) {
    if (!lib_.form(limit)) return false;
    main_ = &main;
    for (std::uint16_t rank = 0; rank < processes(); ++rank)
        processes_.push_back(std::make_unique<ExpressProcess>(*this, rank));
    const auto all_ended = [this] {
        return std::ranges::all_of(processes_, [](const auto& process) {
            return process->rest_ == ExpressProcess::Rest::kEnded;
        });
    };
    return lib_.run(limit, all_ended,
                    [this](std::uint16_t rank, Nanos now) { return process(rank).act(now); });
}

}  // namespace ulc::sim
