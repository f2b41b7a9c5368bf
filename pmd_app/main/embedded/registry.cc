// SPDX-License-Identifier: BSD-3-Clause
#include "main/embedded/registry.h"

#include <pthread.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/clock.h"

namespace ulc::daemon {
namespace {

constexpr std::chrono::milliseconds kLookAgain{1};

}  // namespace

EngineRegistry& EngineRegistry::instance() {
    static auto* const kept = [] {
        static_cast<void>(pthread_atfork([] { instance().before_fork(); },
                                         [] { instance().after_fork(); },
                                         [] { instance().forget_in_child(); }));
        return new EngineRegistry;  // engines may outlive the destructors of statics
    }();
    return *kept;
}

template <typename Condition>
bool EngineRegistry::wait(std::unique_lock<std::mutex>& lock, Nanos give_up, Condition may_go) {
    while (!may_go()) {
        if (monotonic_now() >= give_up) return false;
        lock.unlock();
        std::this_thread::sleep_for(kLookAgain);
        lock.lock();
    }
    return true;
}

template <typename Step>
void EngineRegistry::change(std::unique_lock<std::mutex>& lock, Step step) {
    struct End {
        End(EngineRegistry& its, std::unique_lock<std::mutex>& held) : all(its), lock(held) {
            all.changing_ = true;
            lock.unlock();
        }
        ~End() {
            lock.lock();
            all.changing_ = false;
        }
        End(const End&) = delete;
        End& operator=(const End&) = delete;
        EngineRegistry& all;
        std::unique_lock<std::mutex>& lock;
    } const end(*this, lock);
    step();
}

Err EngineRegistry::open(const std::string& devices, const Make& make, Engine** out,
                         std::string& why) {
    std::unique_lock lock(mutex_);
    Engine* known = nullptr;
    const bool may_go = wait(lock, monotonic_now() + kOpenMax, [&] {
        const auto at = std::ranges::find(engines_, devices, &Engine::devices);
        known = at == engines_.end() ? nullptr : *at;
        return known == nullptr ? !changing_ : !known->closing;
    });
    if (!may_go) {
        why = known != nullptr ? "this process has closed an engine on these devices that does not "
                                 "end; a driver does not return: start the process again"
                               : "another thread of this process opens or ends an engine, and does "
                                 "not come to an end; start the process again";
        return Err::kTimeout;
    }
    if (known != nullptr) {
        ++known->opens;
        *out = known;
        return Err::kOk;
    }
    std::unique_ptr<Engine> engine;
    Err error = Err::kOk;
    change(lock, [&] { error = make(engine, why); });
    if (error != Err::kOk) return error;
    engine->devices = devices;
    engines_.push_back(engine.get());
    *out = engine.release();
    return Err::kOk;
}

void EngineRegistry::close(Engine* engine) {
    {
        const std::lock_guard lock(mutex_);
        if (--engine->opens > 0) return;
        engine->closing = true;
    }
    if (stop(*engine)) {
        std::unique_lock lock(mutex_);
        if (wait(lock, monotonic_now() + kTurnMax, [this] { return !changing_; })) {
            std::erase(engines_, engine);
            change(lock, [=] { delete engine; });
            return;
        }
    }
    spdlog::warn("the engine on {} does not end: a driver does not return; its memory stays",
                 engine->devices);
}

void EngineRegistry::before_fork() {
    std::unique_lock lock(mutex_);
    static_cast<void>(wait(lock, monotonic_now() + kForkWaitMax, [this] { return !changing_; }));
    lock.release();  // after_fork() and forget_in_child() unlock it
}

void EngineRegistry::forget_in_child() {
    for (Engine* engine : engines_)
        if (engine->node != nullptr) engine->node->abandon();
    engines_.clear();
    changing_ = false;
    mutex_.unlock();
}

}  // namespace ulc::daemon
