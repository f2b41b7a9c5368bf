// SPDX-License-Identifier: BSD-3-Clause
// The scheduler of libexpress: its order, its objects and its critical section. Most tests run
// without a switch and a clock: a jump is recorded, and the test then acts as the thread that was
// jumped to. The last tests run on real stacks.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <vector>

#include "base/prng.h"
#include "express/fibers.h"
#include "express/scheduler.h"

namespace ulc::express {
namespace {

/// A scheduler whose jumps return at once. Its clock is moved by the idle loop alone.
struct Recorded {
    Nanos now = 0;
    unsigned idles = 0;
    unsigned contexts = 0;
    std::function<void()> on_idle;
    std::function<bool()> may_compute = [] { return true; };
    Scheduler scheduler;

    static Recorded& of(void* self) { return *static_cast<Recorded*>(self); }
    static void* make(void* self, void (*)(void*), void*) {
        ++of(self).contexts;
        return self;
    }
    static void jump(void*, void*, void*, bool) {}
    static void drop(void* self, void*) { --of(self).contexts; }
    static Nanos time(void* self) { return of(self).now; }
    static bool ask(void* self) { return of(self).may_compute(); }
    static void idle(void* self, Nanos until) {
        Recorded& own = of(self);
        if (++own.idles > 1'000'000) std::abort();  // no thread gets ready any more
        if (own.on_idle) return own.on_idle();
        own.now = until;
    }

    Recorded() : scheduler({this, make, jump, drop}, {this, time, ask, idle}) {
        EXPECT_TRUE(scheduler.start([](void*) {}, nullptr));
        main = &scheduler.current();
    }
    Thread* fork() {
        return scheduler.fork([](void*) {}, nullptr);
    }
    [[nodiscard]] bool runs(const Thread* thread) { return &scheduler.current() == thread; }
    Thread* main;
};

TEST(ExpressThreads, yield_runs_threads_in_the_order_in_which_they_became_ready) {
    Recorded run;
    Thread* const first = run.fork();
    Thread* const second = run.fork();
    EXPECT_TRUE(run.runs(run.main));
    run.scheduler.yield();
    EXPECT_TRUE(run.runs(first));
    run.scheduler.yield();
    EXPECT_TRUE(run.runs(second));
    run.scheduler.yield();
    EXPECT_TRUE(run.runs(run.main));
}

TEST(ExpressThreads, join_waits_for_the_end_and_frees_the_thread) {
    Recorded run;
    const unsigned before = run.contexts;
    Thread* const thread = run.fork();
    EXPECT_TRUE(run.scheduler.join(*thread));
    EXPECT_TRUE(run.runs(thread));
    run.scheduler.finish();
    EXPECT_TRUE(run.runs(run.main));
    EXPECT_EQ(run.contexts, before);
    Thread* const ended = run.fork();
    run.scheduler.yield();
    run.scheduler.finish();
    EXPECT_EQ(run.contexts, before + 1);
    EXPECT_TRUE(run.scheduler.join(*ended));
    EXPECT_EQ(run.contexts, before);
    EXPECT_EQ(run.scheduler.threads(), 0U);
    EXPECT_FALSE(run.scheduler.join(run.scheduler.current()));
}

TEST(ExpressThreads, a_thread_is_joined_once_and_threads_are_bounded) {
    Recorded run;
    Thread* const thread = run.fork();
    Thread* const other = run.fork();
    EXPECT_TRUE(run.scheduler.join(*other));  // the main thread waits
    EXPECT_TRUE(run.runs(thread));
    EXPECT_FALSE(run.scheduler.join(*other));
    unsigned made = 0;
    while (run.fork() != nullptr)
        ++made;
    EXPECT_EQ(made, Scheduler::kThreadsMax - 1);
    for (unsigned n = 0; n < made + 2; ++n) {
        while (run.runs(run.main))
            run.scheduler.yield();
        run.scheduler.finish();
    }
}

TEST(ExpressThreads, a_mutex_passes_to_the_thread_that_waits_longest) {
    Recorded run;
    Mutex mutex;
    Thread* const first = run.fork();
    Thread* const second = run.fork();
    EXPECT_TRUE(run.scheduler.lock(mutex));
    EXPECT_FALSE(run.scheduler.lock(mutex));
    run.scheduler.yield();
    EXPECT_FALSE(run.scheduler.unlock(mutex));
    EXPECT_TRUE(run.scheduler.lock(mutex));  // blocks
    EXPECT_TRUE(run.runs(second));
    EXPECT_TRUE(run.scheduler.lock(mutex));
    EXPECT_TRUE(run.runs(run.main));
    EXPECT_TRUE(run.scheduler.unlock(mutex));
    EXPECT_EQ(mutex.owner, first);
    EXPECT_TRUE(run.runs(run.main));
    run.scheduler.yield();
    EXPECT_TRUE(run.runs(first));
    EXPECT_TRUE(run.scheduler.unlock(mutex));
    EXPECT_EQ(mutex.owner, second);
}

TEST(ExpressThreads, a_condition_gives_its_mutex_up_and_takes_it_again) {
    Recorded run;
    Mutex mutex;
    Condition condition;
    Thread* const other = run.fork();
    EXPECT_FALSE(run.scheduler.wait(condition, mutex));
    EXPECT_TRUE(run.scheduler.lock(mutex));
    EXPECT_TRUE(run.scheduler.wait(condition, mutex));
    EXPECT_TRUE(run.runs(other));
    EXPECT_TRUE(run.scheduler.lock(mutex));
    run.scheduler.signal(condition);
    run.scheduler.yield();
    EXPECT_TRUE(run.runs(other));  // signalled, but the mutex is held
    EXPECT_TRUE(run.scheduler.unlock(mutex));
    EXPECT_EQ(mutex.owner, run.main);
    run.scheduler.yield();
    EXPECT_TRUE(run.runs(run.main));
    EXPECT_TRUE(run.scheduler.unlock(mutex));
}

TEST(ExpressThreads, a_barrier_opens_for_the_last_and_closes_again) {
    Recorded run;
    Barrier barrier;
    barrier.needed = 3;
    Thread* const first = run.fork();
    Thread* const second = run.fork();
    for (int round = 0; round < 3; ++round) {
        run.scheduler.arrive(barrier);
        EXPECT_TRUE(run.runs(first));
        run.scheduler.arrive(barrier);
        EXPECT_TRUE(run.runs(second));
        run.scheduler.arrive(barrier);  // opens it
        EXPECT_TRUE(run.runs(second));
        run.scheduler.yield();
        EXPECT_TRUE(run.runs(run.main));
        run.scheduler.yield();
        run.scheduler.yield();
        run.scheduler.yield();
    }
}

TEST(ExpressThreads, sleepers_wake_in_order_of_their_time) {
    Recorded run;
    Thread* const first = run.fork();
    Thread* const second = run.fork();
    run.scheduler.sleep_for(300);
    EXPECT_TRUE(run.runs(first));
    run.scheduler.sleep_for(100);
    EXPECT_TRUE(run.runs(second));
    run.scheduler.sleep_for(200);
    EXPECT_TRUE(run.runs(first));
    EXPECT_EQ(run.now, 100);
    run.scheduler.sleep_for(300);
    EXPECT_TRUE(run.runs(second));
    run.scheduler.sleep_for(300);
    EXPECT_TRUE(run.runs(run.main));
    EXPECT_EQ(run.now, 300);
    EXPECT_EQ(run.idles, 3U);
}

// ---------------------------------------------------------------- the server

TEST(ExpressThreads, an_upcall_runs_the_server_and_then_the_interrupted_thread) {
    Recorded run;
    run.fork();
    EXPECT_TRUE(run.scheduler.on_upcall());
    EXPECT_TRUE(run.scheduler.is_server());
    run.scheduler.await_work();
    EXPECT_TRUE(run.runs(run.main));
    EXPECT_FALSE(run.scheduler.server_is_busy());
}

TEST(ExpressThreads, the_server_waits_for_a_mutex_and_gets_the_processor_at_its_unlock) {
    Recorded run;
    Mutex mutex;
    Thread* const other = run.fork();
    EXPECT_TRUE(run.scheduler.lock(mutex));
    run.scheduler.yield();
    EXPECT_TRUE(run.runs(other));
    EXPECT_TRUE(run.scheduler.lock(mutex));  // the main thread has it
    EXPECT_TRUE(run.runs(run.main));
    EXPECT_TRUE(run.scheduler.on_upcall());
    EXPECT_TRUE(run.scheduler.lock(mutex));  // the server's handler blocks
    EXPECT_TRUE(run.runs(run.main));
    EXPECT_TRUE(run.scheduler.server_is_busy());
    EXPECT_TRUE(run.scheduler.unlock(mutex));
    EXPECT_TRUE(run.scheduler.is_server());  // before the thread that waited longer
    EXPECT_TRUE(run.scheduler.unlock(mutex));
    EXPECT_EQ(mutex.owner, other);
    run.scheduler.await_work();
    EXPECT_TRUE(run.runs(run.main));
}

TEST(ExpressThreads, an_upcall_inside_an_operation_waits_until_its_end) {
    Recorded run;
    Thread* const other = run.fork();
    bool interrupts = true;
    run.may_compute = [&] {
        EXPECT_TRUE(!interrupts || !run.scheduler.on_upcall());
        interrupts = false;
        return true;
    };
    run.scheduler.yield();  // interrupted on its way to the other thread
    EXPECT_TRUE(run.scheduler.is_server());
    run.scheduler.await_work();
    EXPECT_TRUE(run.runs(other));
}

TEST(ExpressThreads, a_message_in_the_idle_loop_wakes_the_server) {
    Recorded run;
    run.on_idle = [&] { run.scheduler.wake_server(); };
    run.scheduler.sleep_for(Scheduler::kNever);
    EXPECT_TRUE(run.scheduler.is_server());
    run.on_idle = [&] { run.now = Scheduler::kNever; };
    run.scheduler.await_work();
    EXPECT_TRUE(run.runs(run.main));
}

// ---------------------------------------------------------------- at random

/// Random steps of whichever thread runs, checked against the owners of mutexes.
class Random {
public:
    explicit Random(std::uint64_t seed) : random_(seed) {
        for (int n = 0; n < 5; ++n)
            run_.fork();
        run_.on_idle = [this] { run_.scheduler.wake_server(); };
    }

    void step() {
        Scheduler& scheduler = run_.scheduler;
        Thread* const self = &scheduler.current();
        std::vector<Mutex*>& held = held_[self];
        if (waits_for_[self] != nullptr) {
            EXPECT_EQ(waits_for_[self]->owner, self) << "went on without its mutex";
            held.push_back(waits_for_[self]);
            waits_for_[self] = nullptr;
        }
        // Mutexes are taken in the order of their number, so that no deadlock is the test's own.
        const std::size_t lowest =
            held.empty() ? 0 : static_cast<std::size_t>(held.back() - mutexes_) + 1;
        switch (random_.below(4)) {
            case 0:
                if (lowest >= std::size(mutexes_)) return;
                waits_for_[self] = &mutexes_[lowest + random_.below(std::size(mutexes_) - lowest)];
                contended_ += waits_for_[self]->owner != nullptr && !held.empty();
                EXPECT_TRUE(scheduler.lock(*waits_for_[self]));
                return;
            case 1:
                if (held.empty()) return;
                waits_for_[self] = nullptr;
                {
                    Mutex* const mutex = held.back();
                    held.pop_back();
                    EXPECT_TRUE(scheduler.unlock(*mutex));
                }
                return;
            case 2:
                if (scheduler.is_server()) {
                    if (held.empty()) scheduler.await_work();
                } else if (random_.below(2) == 0) {
                    EXPECT_TRUE(scheduler.on_upcall());
                }
                return;
            default:
                scheduler.yield();
                return;
        }
    }

    [[nodiscard]] unsigned contended() const { return contended_; }

private:
    Prng random_;
    Recorded run_;
    Mutex mutexes_[4];
    std::map<Thread*, std::vector<Mutex*>> held_;
    std::map<Thread*, Mutex*> waits_for_;
    unsigned contended_ = 0;
};

TEST(ExpressThreads, nested_contention_gives_each_mutex_to_one_thread_at_a_time) {
    unsigned contended = 0;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        Random run(seed);
        for (int step = 0; step < 5'000; ++step)
            run.step();
        contended += run.contended();
    }
    EXPECT_GT(contended, 1'000U);
}

// ---------------------------------------------------------------- on real stacks

struct Real {
    Scheduler scheduler;
    Mutex outer, inner;
    Condition changed;
    unsigned turns = 0;
    unsigned served = 0;

    Real()
        : scheduler(fiber_switch(),
                    {this, [](void*) { return Nanos{0}; }, [](void*) { return true; },
                     [](void*, Nanos) { std::abort(); }}) {
        EXPECT_TRUE(scheduler.start(serve, this));
    }
    static void serve(void* self) {
        auto& own = *static_cast<Real*>(self);
        for (;;) {
            EXPECT_TRUE(own.scheduler.lock(own.inner));
            ++own.served;
            EXPECT_TRUE(own.scheduler.unlock(own.inner));
            own.scheduler.await_work();
        }
    }
    static void work(void* self) {
        auto& own = *static_cast<Real*>(self);
        for (int n = 0; n < 100; ++n) {
            EXPECT_TRUE(own.scheduler.lock(own.outer));
            EXPECT_TRUE(own.scheduler.lock(own.inner));
            const unsigned before = own.turns;
            EXPECT_TRUE(n % 10 != 0 || own.scheduler.on_upcall());  // the server has to wait
            own.scheduler.yield();
            EXPECT_EQ(own.turns, before);
            own.turns = before + 1;
            EXPECT_TRUE(own.scheduler.unlock(own.inner));
            EXPECT_TRUE(own.scheduler.unlock(own.outer));
        }
        EXPECT_TRUE(own.scheduler.lock(own.outer));
        own.scheduler.broadcast(own.changed);
        EXPECT_TRUE(own.scheduler.unlock(own.outer));
    }
};

TEST(ExpressFibers, threads_contend_for_nested_mutexes_on_their_own_stacks) {
    Real run;
    std::vector<Thread*> threads(8);
    for (Thread*& thread : threads)
        thread = run.scheduler.fork(Real::work, &run);
    EXPECT_TRUE(run.scheduler.lock(run.outer));
    while (run.turns < 800)
        EXPECT_TRUE(run.scheduler.wait(run.changed, run.outer));
    EXPECT_TRUE(run.scheduler.unlock(run.outer));
    for (Thread* thread : threads)
        EXPECT_TRUE(run.scheduler.join(*thread));
    EXPECT_EQ(run.turns, 800U);
    EXPECT_EQ(run.served, 80U);
}

/// Fills the stack from above. Not inlined, so that each call has a frame.
[[gnu::noinline]] unsigned descend(unsigned depth) {
    volatile char frame[4096];
    frame[0] = static_cast<char>(depth);
    return depth == 0 ? 0 : descend(depth - 1) + static_cast<unsigned>(frame[0] != 0);
}

TEST(ExpressFibers, a_stack_that_overflows_meets_its_guard_page) {
    const auto child = fork();
    if (child == 0) {
        std::signal(SIGSEGV, SIG_DFL);
        Real run;
        Thread* const thread = run.scheduler.fork([](void*) { descend(100'000); }, nullptr);
        static_cast<void>(run.scheduler.join(*thread));
        _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_FALSE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace ulc::express
