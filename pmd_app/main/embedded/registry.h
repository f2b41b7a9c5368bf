// SPDX-License-Identifier: BSD-3-Clause
// The embedded engines of this process, so that endpoints on the same devices share one: a port
// cannot be opened twice. Used by embedded.cc.
//
//   open() ──▶ changing ──▶ open ──last close()──▶ closing: delivers ──▶ changing ──▶ gone
//
// One engine at a time is changing, made or destroyed: DPDK allows no more. The lock is held for
// looks at the list alone, so a fork never waits for a wire. A fork waits for a change, but not
// longer than kForkWaitMax: a child that finds half an engine could hold its ports' memory.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.h"
#include "main/embedded/embedded_engine.h"

namespace ulc::daemon {

class EngineRegistry {
public:
    /// Limit of open(): longer than an engine delivers its data before it ends.
    static constexpr Nanos kOpenMax = kDrainMax + 2 * kTurnMax;
    static constexpr Nanos kForkWaitMax = kSecond;

    using Engine = abi::EmbeddedEngine;
    using Make = std::function<Err(std::unique_ptr<Engine>& out, std::string& why)>;

    /// The one of this process. Its engines are forgotten in a child of fork().
    static EngineRegistry& instance();

    /// Returns the engine on these devices, or one that `make` makes. Errors: those of `make`;
    /// kTimeout (another engine is made or ends all the time; why: the sentence).
    Err open(const std::string& devices, const Make& make, Engine** out, std::string& why);
    /// Ends what one open() began; the last one ends the engine. An engine whose driver does not
    /// return stays, and its devices cannot be opened again; the log says so.
    void close(Engine* engine);

    // --- around fork()
    void before_fork();
    void after_fork() { mutex_.unlock(); }
    /// In a child, the engines belong to the parent. Without this the child would hold the parent's
    /// stations on shared memory beyond its end, and open() would return an engine that no thread
    /// runs.
    void forget_in_child();

private:
    /// Waits, the lock held, until `may_go` or give_up. Returns the last value of `may_go`.
    template <typename Condition>
    bool wait(std::unique_lock<std::mutex>& lock, Nanos give_up, Condition may_go);
    /// Makes or destroys an engine, the lock held before and after.
    template <typename Step>
    void change(std::unique_lock<std::mutex>& lock, Step step);

    std::mutex mutex_;
    std::vector<Engine*> engines_;
    bool changing_ = false;
};

}  // namespace ulc::daemon
