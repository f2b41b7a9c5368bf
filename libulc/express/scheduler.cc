// SPDX-License-Identifier: BSD-3-Clause
// Operations of the scheduler. Each changes queues, then continues in the next thread.
#include "express/scheduler.h"

#include <atomic>
#include <new>

#include "base/check.h"

namespace ulc::express {

// ---------------------------------------------------------------- queues

void Queue::push_back(Thread& thread) noexcept {
    thread.next = nullptr;
    if (head_ == nullptr) {
        head_ = &thread;
    } else {
        tail_->next = &thread;
    }
    tail_ = &thread;
}

void Queue::push_front(Thread& thread) noexcept {
    thread.next = head_;
    if (head_ == nullptr) tail_ = &thread;
    head_ = &thread;
}

Thread* Queue::pop() noexcept {
    Thread* const first = head_;
    if (first != nullptr) head_ = first->next;
    return first;
}

// ---------------------------------------------------------------- the package's critical section

void Scheduler::enter() noexcept {
    ULC_CHECK(!inside_);
    inside_ = true;
    std::atomic_signal_fence(std::memory_order_seq_cst);
}

void Scheduler::leave() {
    bury();
    for (;;) {
        if (!is_server() && server_->state == State::kReady) {
            ready_.push_front(*current_);
            current_->state = State::kReady;
            dispatch();
        }
        std::atomic_signal_fence(std::memory_order_seq_cst);
        inside_ = false;
        std::atomic_signal_fence(std::memory_order_seq_cst);
        if (!wanted_) return;
        inside_ = true;
        wanted_ = false;
        wake_server();
        // The promise to poll has stood since the upcall, and ends if the server finds no message.
        if (!is_server()) reconsider();
    }
}

bool Scheduler::on_upcall() {
    if (inside_) {
        wanted_ = true;
        return false;
    }
    enter();
    wake_server();
    leave();
    return true;
}

void Scheduler::reconsider() {
    ULC_CHECK(!is_server());
    current_->state = State::kReady;
    ready_.push_front(*current_);
    dispatch();
}

// ---------------------------------------------------------------- which thread runs

void Scheduler::wake(Thread& thread) noexcept {
    thread.state = State::kReady;
    if (&thread != server_) ready_.push_back(thread);
}

void Scheduler::wake_all(Queue& queue) {
    while (Thread* thread = queue.pop())
        wake(*thread);
}

void Scheduler::wake_server() noexcept {
    if (server_->state == State::kAwaitsWork) server_->state = State::kReady;
}

void Scheduler::wake_sleepers() noexcept {
    if (sleepers_ == nullptr) return;
    const Nanos now = around_.now(around_.self);
    while (sleepers_ != nullptr && sleepers_->wakes_at <= now) {
        Thread& thread = *sleepers_;
        sleepers_ = thread.next;
        wake(thread);
    }
}

Thread* Scheduler::pick() {
    for (;;) {
        wake_sleepers();
        if (server_->state == State::kReady) return server_;
        if (ready_.is_empty()) {
            around_.idle(around_.self, sleepers_ == nullptr ? kNever : sleepers_->wakes_at);
        } else if (around_.may_compute(around_.self)) {
            return ready_.pop();
        }
    }
}

void Scheduler::dispatch(bool last) {
    Thread* const from = current_;
    Thread* const to = pick();
    to->state = State::kRunning;
    current_ = to;
    if (from != to) switch_.jump(switch_.self, from->context, to->context, last);
}

/// The server is above application priority in each queue, too.
void Scheduler::put(Thread& thread, Queue& queue) noexcept {
    if (&thread == server_) {
        queue.push_front(thread);
    } else {
        queue.push_back(thread);
    }
}

void Scheduler::block_in(Queue& queue) {
    Thread& thread = *current_;
    thread.state = State::kBlocked;
    put(thread, queue);
    dispatch();
}

// ---------------------------------------------------------------- threads

Thread* Scheduler::make(void (*entry)(void*), void* argument, void (*run)(void*)) {
    auto* const thread = new (std::nothrow) Thread;
    if (thread == nullptr) return nullptr;
    thread->entry = entry;
    thread->argument = argument;
    thread->context = switch_.make(switch_.self, run, this);
    if (thread->context == nullptr) {
        delete thread;
        return nullptr;
    }
    thread->older = newest_;
    if (newest_ != nullptr) newest_->newer = thread;
    newest_ = thread;
    return thread;
}

void Scheduler::drop(Thread& thread) noexcept {
    if (thread.older != nullptr) thread.older->newer = thread.newer;
    (thread.newer == nullptr ? newest_ : thread.newer->older) = thread.older;
    switch_.drop(switch_.self, thread.context);
    delete &thread;
}

Scheduler::~Scheduler() {
    while (newest_ != nullptr)
        drop(*newest_);
}

bool Scheduler::start(void (*serve)(void*), void* argument) {
    current_ = make(nullptr, nullptr, nullptr);
    server_ = make(serve, argument, run_current);
    if (current_ == nullptr || server_ == nullptr) return false;
    current_->state = State::kRunning;
    server_->state = State::kAwaitsWork;
    return true;
}

void Scheduler::run_current(void* scheduler) {
    auto& self = *static_cast<Scheduler*>(scheduler);
    self.leave();
    self.current_->entry(self.current_->argument);
    self.finish();
}

Thread* Scheduler::fork(void (*entry)(void*), void* argument) {
    enter();
    Thread* const thread = threads_ < kThreadsMax ? make(entry, argument, run_current) : nullptr;
    if (thread != nullptr) {
        ++threads_;
        ready_.push_back(*thread);
    }
    leave();
    return thread;
}

bool Scheduler::join(Thread& thread) {
    enter();
    const bool may = &thread != current_ && thread.joiner == nullptr;
    if (may) {
        thread.joiner = current_;
        --threads_;
        if (thread.state == State::kEnded) {
            thread.next = buried_;
            buried_ = &thread;
        } else {
            current_->state = State::kBlocked;
            dispatch();
        }
    }
    leave();
    return may;
}

void Scheduler::finish() {
    enter();
    ULC_CHECK(!is_server());
    Thread& thread = *current_;
    thread.state = State::kEnded;
    if (thread.joiner != nullptr) {
        wake(*thread.joiner);
        thread.next = buried_;
        buried_ = &thread;
    }
    dispatch(true);
    leave();
}

void Scheduler::bury() noexcept {
    while (buried_ != nullptr) {
        Thread& thread = *buried_;
        buried_ = thread.next;
        drop(thread);
    }
}

void Scheduler::yield() {
    enter();
    if (!is_server()) {
        current_->state = State::kReady;
        ready_.push_back(*current_);
        dispatch();
    }
    leave();
}

void Scheduler::sleep_for(Nanos time) {
    enter();
    const Nanos now = around_.now(around_.self);
    const Nanos instant = time >= kNever - now ? kNever : now + time;
    Thread& thread = *current_;
    thread.state = State::kBlocked;
    thread.wakes_at = instant;
    Thread** at = &sleepers_;
    while (*at != nullptr && (*at)->wakes_at <= instant)
        at = &(*at)->next;
    thread.next = *at;
    *at = &thread;
    dispatch();
    leave();
}

void Scheduler::await_work() {
    enter();
    ULC_CHECK(is_server());
    current_->state = State::kAwaitsWork;
    dispatch();
    leave();
}

// ---------------------------------------------------------------- synchronisation

bool Scheduler::lock(Mutex& mutex) {
    enter();
    const bool may = mutex.owner != current_;
    if (may && mutex.owner == nullptr) {
        mutex.owner = current_;
    } else if (may) {
        block_in(mutex.waiters);
    }
    leave();
    return may;
}

/// The next waiter owns the mutex at once, so that none that comes later overtakes it.
void Scheduler::pass_on(Mutex& mutex) noexcept {
    mutex.owner = mutex.waiters.pop();
    if (mutex.owner != nullptr) wake(*mutex.owner);
}

bool Scheduler::unlock(Mutex& mutex) {
    enter();
    const bool may = mutex.owner == current_;
    if (may) pass_on(mutex);
    leave();
    return may;
}

bool Scheduler::wait(Condition& condition, Mutex& mutex) {
    enter();
    const bool may = mutex.owner == current_;
    if (may) {
        pass_on(mutex);
        current_->mutex = &mutex;
        block_in(condition.waiters);
    }
    leave();
    return may;
}

/// Lets the first waiter continue when it has its mutex again.
void Scheduler::resume_waiter(Condition& condition) noexcept {
    Thread& thread = *condition.waiters.pop();
    Mutex& mutex = *thread.mutex;
    if (mutex.owner == nullptr) {
        mutex.owner = &thread;
        wake(thread);
    } else {
        put(thread, mutex.waiters);
    }
}

void Scheduler::signal(Condition& condition) {
    enter();
    if (!condition.waiters.is_empty()) resume_waiter(condition);
    leave();
}

void Scheduler::broadcast(Condition& condition) {
    enter();
    while (!condition.waiters.is_empty())
        resume_waiter(condition);
    leave();
}

void Scheduler::arrive(Barrier& barrier) {
    enter();
    if (++barrier.arrived < barrier.needed) {
        block_in(barrier.waiters);
    } else {
        barrier.arrived = 0;
        wake_all(barrier.waiters);
    }
    leave();
}

}  // namespace ulc::express
