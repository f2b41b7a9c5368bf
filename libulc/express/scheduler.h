// SPDX-License-Identifier: BSD-3-Clause
// Cooperative threads on one kernel thread: who runs, and the objects that threads wait for
// [Express §4.1, §4.2.5]. The switch of stacks, the clock and the idle loop are arguments, so that
// a test or a simulator runs it without them. Used by Process.
//
//   operation:  enter() ─▶ change queues ─▶ dispatch() to the next thread ─▶ leave()
//   upcall:     outside an operation it runs the server at once. Inside one (the critical section
//               of this package) it only notes that the server is wanted, and leave() runs it.
//
// Order: the server first, then threads in the order in which they became ready. A thread that the
// server preempts stays first. Invariant: no operation has a step behind its dispatch() but
// leave(), so it is complete whether or not the switch returns at once.
#pragma once

#include <cstdint>
#include <limits>

#include "base/units.h"
#include "express/express.h"

namespace ulc::express {

struct Mutex;

enum class State : std::uint8_t {
    kReady,
    kRunning,
    kBlocked,
    kAwaitsWork,  ///< the server, which has no message
    kEnded,
};

struct Thread {
    void* context = nullptr;  ///< made by the switch
    void (*entry)(void*) = nullptr;
    void* argument = nullptr;
    Thread* next = nullptr;    ///< in the queue that it is in
    Thread* joiner = nullptr;  ///< the thread that waits for its end
    Mutex* mutex = nullptr;    ///< taken again behind a condition
    Thread* newer = nullptr;   ///< in the list of all threads
    Thread* older = nullptr;
    Nanos wakes_at = 0;
    State state = State::kReady;
};

/// First in, first out; a thread is in one queue at most.
class Queue {
public:
    [[nodiscard]] bool is_empty() const noexcept { return head_ == nullptr; }
    void push_back(Thread& thread) noexcept;
    void push_front(Thread& thread) noexcept;
    /// Returns the first thread, nullptr if there is none.
    [[nodiscard]] Thread* pop() noexcept;

private:
    Thread* head_ = nullptr;
    Thread* tail_ = nullptr;
};

// Zeros are an unlocked mutex and a condition that no thread waits for: express.h relies on it.
struct Mutex {
    Thread* owner = nullptr;
    Queue waiters;
};
struct Condition {
    Queue waiters;
};
struct Barrier {
    Queue waiters;
    unsigned needed = 0;
    unsigned arrived = 0;
};

/// The switch of stacks. A context is one stack and its registers.
struct Switch {
    void* self;
    /// Returns a context that calls run(argument) when it is first jumped to, or stands for the
    /// stack that the caller runs on if `run` is nullptr. nullptr: no memory.
    void* (*make)(void* self, void (*run)(void*), void* argument);
    /// Leaves `from`, continues in `to`. `last`: nothing jumps to `from` any more.
    void (*jump)(void* self, void* from, void* to, bool last);
    void (*drop)(void* self, void* context);
};

/// Questions to the layer above, always inside an operation.
struct Surroundings {
    void* self;
    Nanos (*now)(void* self);
    /// Called before a thread that is not the server continues. Returns false if the server was
    /// woken, which goes first.
    bool (*may_compute)(void* self);
    /// Called while no thread is ready. Returns by `until` at the latest.
    void (*idle)(void* self, Nanos until);
};

class Scheduler {
public:
    static constexpr unsigned kThreadsMax = EXPRESS_THREADS_MAX;  ///< not joined yet
    static constexpr Nanos kNever = std::numeric_limits<Nanos>::max();

    Scheduler(const Switch& change, const Surroundings& around) noexcept
        : switch_(change), around_(around) {}
    ~Scheduler();
    Scheduler(const Scheduler&) = delete;
    Scheduler& operator=(const Scheduler&) = delete;

    /// Makes the caller a thread, and `serve` the server, which awaits work. False: no memory.
    [[nodiscard]] bool start(void (*serve)(void*), void* argument);

    /// Makes a thread that is ready. nullptr: no memory, or kThreadsMax.
    [[nodiscard]] Thread* fork(void (*entry)(void*), void* argument);
    /// Waits for its end; the thread is freed. False: another thread joins it, or it is the caller.
    [[nodiscard]] bool join(Thread& thread);
    void yield();
    void sleep_for(Nanos time);
    /// Ends the calling thread, as the return of its entry does.
    void finish();

    // Each is false if the caller may not: it has the mutex already, or has it not.
    [[nodiscard]] bool lock(Mutex& mutex);
    [[nodiscard]] bool unlock(Mutex& mutex);
    [[nodiscard]] bool wait(Condition& condition, Mutex& mutex);
    void signal(Condition& condition);
    void broadcast(Condition& condition);
    void arrive(Barrier& barrier);

    /// The server has no message: it waits for wake_server().
    void await_work();
    /// In the signal handler of an upcall: runs the server, and returns when it has blocked or has
    /// no message. False: the interrupted thread was inside an operation, which will run it.
    [[nodiscard]] bool on_upcall();

    // --- for the layer above, between enter() and leave(), and in Surroundings
    void enter() noexcept;
    void leave();
    /// Lets the server go first if it is ready; asks may_compute() otherwise.
    void reconsider();
    void block_in(Queue& queue);
    void wake_all(Queue& queue);
    void wake_server() noexcept;

    [[nodiscard]] bool is_server() const noexcept { return current_ == server_; }
    /// True while the server has a message, also if its handler is blocked.
    [[nodiscard]] bool server_is_busy() const noexcept {
        return server_ != nullptr && server_->state != State::kAwaitsWork;
    }
    [[nodiscard]] Thread& current() noexcept { return *current_; }
    /// Threads that were forked and not joined.
    [[nodiscard]] unsigned threads() const noexcept { return threads_; }

private:
    [[nodiscard]] Thread* make(void (*entry)(void*), void* argument, void (*run)(void*));
    static void run_current(void* scheduler);
    void wake(Thread& thread) noexcept;
    void put(Thread& thread, Queue& queue) noexcept;
    void pass_on(Mutex& mutex) noexcept;
    void resume_waiter(Condition& condition) noexcept;
    void wake_sleepers() noexcept;
    [[nodiscard]] Thread* pick();
    void dispatch(bool last = false);
    void bury() noexcept;
    void drop(Thread& thread) noexcept;

    Switch switch_;
    Surroundings around_;
    Thread* server_ = nullptr;
    Thread* current_ = nullptr;
    Thread* newest_ = nullptr;    ///< first in the list of all
    Thread* buried_ = nullptr;    ///< joined and ended, its stack still to be dropped
    Thread* sleepers_ = nullptr;  ///< by wakes_at
    Queue ready_;                 ///< without the server
    unsigned threads_ = 0;
    // Written by this thread, and by a signal handler on it.
    volatile bool inside_ = false;  ///< an operation is in progress
    volatile bool wanted_ = false;  ///< an upcall came meanwhile
};

}  // namespace ulc::express
