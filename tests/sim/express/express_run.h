// SPDX-License-Identifier: BSD-3-Clause
// Express programs on the simulated cluster: cooperative threads of the shipped scheduler, a server
// thread, and the contract to poll or be interrupted [Express §4], one process a node.
//
//   a thread computes ── message ─▶ upcall: the server runs handlers on its stack ─▶ goes on
//   all threads wait  ── message ─▶ the server runs handlers
//
// The stacks are real, the time is virtual: a thread that computes, or a process without a ready
// thread, leaves its stack for the simulator until its node's turn. A handler's work is charged to
// the processor, and lengthens what the interrupted thread computes.
//
// Counterpart of libulc/express/process.h, which blocks in the kernel.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "express/scheduler.h"
#include "tests/sim/cluster/lib_cluster.h"

namespace ulc::sim {

/// Costs and rules of the message system.
struct ExpressRules {
    bool interrupts = true;  ///< a message interrupts a thread that computes (the contract)
    Nanos upcall = 0;        ///< cost of an interruption
    /// Messages cost an upcall wherever they are taken: there is no short cut by shared memory.
    bool crosses_always = false;
    double copy_octet = 0;  ///< ns a byte of each message taken, which is copied to the program
};

class ExpressRun;

/// A process of the program. All but the constructor is called on its stacks.
class ExpressProcess {
public:
    using Handler = std::function<void(std::uint16_t from, std::span<const std::byte> message)>;

    ExpressProcess(ExpressRun& run, std::uint16_t rank);
    ~ExpressProcess();
    ExpressProcess(const ExpressProcess&) = delete;
    ExpressProcess& operator=(const ExpressProcess&) = delete;

    [[nodiscard]] std::uint16_t rank() const noexcept { return rank_; }
    [[nodiscard]] std::uint16_t processes() const noexcept;
    [[nodiscard]] express::Scheduler& scheduler() noexcept { return *scheduler_; }
    [[nodiscard]] Nanos now() const noexcept { return now_; }

    /// Adds a handler. All processes add the same ones, in order. Returns its number.
    unsigned add_handler(Handler handler);
    /// Sends to a process, this one included. Returns at once.
    void send(std::uint16_t to, unsigned handler, std::span<const std::byte> message);
    /// Computes for a time. Messages may interrupt it, and the engine's work lengthens it.
    void compute(Nanos time);
    /// Charges the processor for work that nothing interrupts.
    void spend(Nanos time);
    /// Waits until all processes have called it; log2(n) messages of each (dissemination).
    void barrier();

    [[nodiscard]] std::uint64_t polled() const noexcept { return handled_[0]; }
    [[nodiscard]] std::uint64_t interrupted() const noexcept { return handled_[1]; }

private:
    friend class ExpressRun;
    enum class Rest : std::uint8_t { kNone, kComputes, kIdles, kEnded };
    struct Unsent {
        std::uint16_t to;
        unsigned handler;
        std::vector<std::byte> message;
    };
    struct Work {
        const void* view = nullptr;
        std::size_t length = 0;
        std::uint16_t source = 0;
        unsigned handler = 0;
    };
    class Call;

    Nanos act(Nanos now);
    void begin();
    void leave_stack(Rest rest);
    void flush();
    [[nodiscard]] bool submit(const Unsent& message);
    [[nodiscard]] bool look();
    [[nodiscard]] bool wakes_server();
    [[nodiscard]] bool may_compute();
    void idle(Nanos until);
    void serve();
    void serve_one();
    [[nodiscard]] ulc_endpoint* endpoint() noexcept;

    ExpressRun& run_;
    std::uint16_t rank_;
    express::Switch switch_;
    void* outside_ = nullptr;  ///< the simulator's stack
    void* root_ = nullptr;     ///< the first thread's stack
    void* inside_ = nullptr;   ///< the stack that was left last; nullptr: none was
    std::unique_ptr<express::Scheduler> scheduler_;
    std::vector<Handler> handlers_;
    std::deque<Unsent> unsent_;
    Work work_;
    express::Queue changed_;
    std::vector<std::uint64_t> entered_;  ///< announcements of others, by round of a barrier
    std::uint64_t barriers_ = 0;
    Rest rest_ = Rest::kNone;
    Nanos now_ = 0;
    Nanos until_ = 0;
    bool in_upcall_ = false;
    std::array<std::uint64_t, 2> handled_{};  ///< polled; in upcalls
};

/// A program on every node of a cluster.
class ExpressRun {
public:
    using Main = std::function<void(ExpressProcess&)>;

    ExpressRun(const ClusterConfig& config, const ExpressRules& rules);
    /// Runs main() in each process until all have returned. False: not within the limit, or the
    /// job did not form.
    [[nodiscard]] bool run(const Main& main, Nanos limit = 36'000 * kSecond);

    [[nodiscard]] const ExpressRules& rules() const noexcept { return rules_; }
    [[nodiscard]] SimCluster& cluster() noexcept { return lib_.cluster(); }
    [[nodiscard]] std::uint16_t processes() const noexcept { return lib_.ranks(); }
    [[nodiscard]] ExpressProcess& process(std::uint16_t rank) { return *processes_[rank]; }

private:
    friend class ExpressProcess;

    LibCluster lib_;
    ExpressRules rules_;
    const Main* main_ = nullptr;
    std::vector<std::unique_ptr<ExpressProcess>> processes_;
};

}  // namespace ulc::sim
