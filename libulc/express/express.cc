// SPDX-License-Identifier: BSD-3-Clause
// The functions of express.h: checks of callers and arguments.
#include "express/express.h"

#include <cstdint>

#include "express/process.h"

namespace {

using ulc::express::Barrier;
using ulc::express::Condition;
using ulc::express::Mutex;
using ulc::express::Process;
using ulc::express::Scheduler;
using ulc::express::Thread;

/// The only one. Handlers and upcalls may come until the end of the program.
Process& process() {
    static auto* const kept = new Process;
    return *kept;
}

/// Returns the object in the memory of a program's one. Zeros are a value of each.
template <typename Inner, typename Outer>
Inner& of(Outer* outer) {
    static_assert(sizeof(Inner) <= sizeof(Outer) && alignof(Inner) <= sizeof(std::uint64_t));
    return *static_cast<Inner*>(static_cast<void*>(outer));
}

int result(bool done) { return done ? ULC_OK : ULC_ERR_INVALID; }

/// Returns ULC_ERR_INVALID if the caller may not call now, else what `call` returns.
template <typename Call>
int guarded(bool arguments_are_valid, Call call) {
    if (!arguments_are_valid || !process().is_callers()) return ULC_ERR_INVALID;
    return call(process().scheduler());
}

}  // namespace

extern "C" {

int express_init(const express_handler* handlers, unsigned count) {
    if (count > EXPRESS_HANDLERS_MAX || (handlers == nullptr && count > 0)) return ULC_ERR_INVALID;
    for (unsigned n = 0; n < count; ++n)
        if (handlers[n] == nullptr) return ULC_ERR_INVALID;
    return process().init(handlers, count);
}

int express_exit() {
    return guarded(true, [](Scheduler&) { return process().exit(); });
}

int express_process() { return process().rank(); }
int express_processes() { return process().size() == 0 ? -1 : process().size(); }

int express_sync() {
    return guarded(true, [](Scheduler&) { return process().synchronise(); });
}

int express_on_death(express_death_handler handler) {
    return guarded(true, [=](Scheduler&) {
        process().set_death_handler(handler);
        return int{ULC_OK};
    });
}

void* express_alloc(size_t length) {
    return process().is_callers() ? process().allocate(length) : nullptr;
}

int express_free(void* message) {
    return guarded(message != nullptr, [=](Scheduler&) { return process().free(message); });
}

int express_send(uint16_t to, void* message, express_handler handler) {
    return guarded(message != nullptr,
                   [=](Scheduler&) { return process().send(to, message, handler); });
}

int express_let_interrupt(int allowed) {
    return guarded(true, [=](Scheduler&) { return process().let_interrupt(allowed != 0); });
}

int express_lend_frames(int lend) {
    return guarded(true, [=](Scheduler&) { return process().lend_frames(lend != 0); });
}

unsigned long express_handled(int interrupted) { return process().handled(interrupted != 0); }

unsigned long express_dropped(enum express_drop reason) {
    const auto number = static_cast<unsigned>(reason);
    return number < EXPRESS_DROPS ? process().dropped(number) : 0;
}

// ---------------------------------------------------------------- threads

express_thread* express_fork(void (*entry)(void*), void* argument) {
    if (entry == nullptr || !process().is_callers()) return nullptr;
    return reinterpret_cast<express_thread*>(process().scheduler().fork(entry, argument));
}

int express_join(express_thread* thread) {
    return guarded(thread != nullptr, [=](Scheduler& scheduler) {
        return result(scheduler.join(*reinterpret_cast<Thread*>(thread)));
    });
}

int express_yield() {
    return guarded(true, [](Scheduler& scheduler) {
        scheduler.yield();
        return int{ULC_OK};
    });
}

int express_sleep(int64_t nanoseconds) {
    return guarded(nanoseconds >= 0, [=](Scheduler& scheduler) {
        scheduler.sleep_for(nanoseconds);
        return int{ULC_OK};
    });
}

int express_lock(express_mutex* mutex) {
    return guarded(mutex != nullptr,
                   [=](Scheduler& scheduler) { return result(scheduler.lock(of<Mutex>(mutex))); });
}

int express_unlock(express_mutex* mutex) {
    return guarded(mutex != nullptr, [=](Scheduler& scheduler) {
        return result(scheduler.unlock(of<Mutex>(mutex)));
    });
}

int express_wait(express_condition* condition, express_mutex* mutex) {
    return guarded(condition != nullptr && mutex != nullptr, [=](Scheduler& scheduler) {
        return result(scheduler.wait(of<Condition>(condition), of<Mutex>(mutex)));
    });
}

int express_signal(express_condition* condition) {
    return guarded(condition != nullptr, [=](Scheduler& scheduler) {
        scheduler.signal(of<Condition>(condition));
        return int{ULC_OK};
    });
}

int express_broadcast(express_condition* condition) {
    return guarded(condition != nullptr, [=](Scheduler& scheduler) {
        scheduler.broadcast(of<Condition>(condition));
        return int{ULC_OK};
    });
}

int express_barrier_init(express_barrier* barrier, unsigned threads) {
    return guarded(barrier != nullptr && threads > 0, [=](Scheduler&) {
        Barrier inner;
        inner.needed = threads;
        of<Barrier>(barrier) = inner;
        return int{ULC_OK};
    });
}

int express_barrier_wait(express_barrier* barrier) {
    return guarded(barrier != nullptr && of<Barrier>(barrier).needed > 0,
                   [=](Scheduler& scheduler) {
                       scheduler.arrive(of<Barrier>(barrier));
                       return int{ULC_OK};
                   });
}

}  // extern "C"
