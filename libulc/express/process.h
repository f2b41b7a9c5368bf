// SPDX-License-Identifier: BSD-3-Clause
// The process of an Express program: its endpoint, its server thread, and the promise to poll.
//
//   a thread computes ── upcall ──▶ on_upcall() ──▶ the server runs handlers ──▶ the thread goes on
//   all threads wait  ── idle()  ──▶ polls          ──▶ the server runs handlers
//
// The promise to poll [Express §4.2.4] holds in the idle loop, in calls of the endpoint, and while
// the server has a message. may_compute() revokes it before a thread goes on.
//
// Used by express.cc. Invariant: the endpoint is called only inside an operation of the scheduler,
// and never while the promise is revoked.
#pragma once

#include <pthread.h>
#include <ulc_upcall.h>

#include <array>
#include <memory>
#include <unordered_map>
#include <vector>

#include "express/message.h"
#include "express/pool.h"
#include "express/scheduler.h"
#include "express/sync_rounds.h"

namespace ulc::express {

class Process {
public:
    Process() noexcept;

    /// Joins the job of the environment. Returns an error of ulc.h, after a sentence was printed.
    [[nodiscard]] int init(const express_handler* handlers, unsigned count);
    [[nodiscard]] int exit();

    /// True if this kernel thread may call.
    [[nodiscard]] bool is_callers() const noexcept {
        return ep_ != nullptr && pthread_equal(thread_, pthread_self()) != 0;
    }
    [[nodiscard]] Scheduler& scheduler() noexcept { return *scheduler_; }
    [[nodiscard]] int rank() const noexcept { return rank_; }
    [[nodiscard]] int size() const noexcept { return static_cast<int>(peers_.size()); }
    void set_death_handler(express_death_handler handler) noexcept { on_death_ = handler; }
    [[nodiscard]] unsigned long dropped(unsigned reason) const noexcept { return dropped_[reason]; }
    [[nodiscard]] unsigned long handled(bool interrupted) const noexcept {
        return handled_[interrupted ? 1 : 0];
    }
    [[nodiscard]] int let_interrupt(bool allowed);
    [[nodiscard]] int lend_frames(bool lend);
    [[nodiscard]] void* allocate(std::size_t length);
    [[nodiscard]] int free(const void* message);
    [[nodiscard]] int send(std::uint16_t to, const void* message, express_handler handler);
    [[nodiscard]] int synchronise();

private:
    class Call;

    struct Peer {
        std::uint64_t sent = 0;  ///< messages to it since the last express_sync()
        bool is_known = false;   ///< has shown the same build
        bool is_dead = false;
        bool death_is_handled = false;  ///< its death has been handled
    };
    /// The message whose handler is next or runs.
    struct Work {
        bool is_there = false;
        const void* view = nullptr;
        std::size_t length = 0;
        std::uint16_t source = 0;
        std::uint16_t handler = 0;
        bool is_odd = false;
    };
    [[nodiscard]] int open();
    [[nodiscard]] int agree();
    [[nodiscard]] int has_agreed() const;
    void close();

    [[nodiscard]] bool may_compute();
    void poll();
    void idle(Nanos until);
    void on_upcall();
    void promise_to_poll();
    [[nodiscard]] bool wakes_server();
    void collect();
    void flush();
    [[nodiscard]] int submit(Buffer& buffer);
    void release(Buffer& buffer);
    void tell(std::uint16_t to, Kind kind, const void* bytes, std::size_t length);
    void tell_round();
    void tell_broken();
    [[nodiscard]] int pass_rounds();
    [[nodiscard]] bool is_any_dead() const;
    void look_at_peers();
    [[noreturn]] void end_program(const char* what, int error) const;

    [[nodiscard]] bool look();
    [[nodiscard]] bool take_enter(const void* view, const ulc_status& status);
    [[nodiscard]] bool take_in(const void* view, const ulc_status& status);
    [[nodiscard]] bool drop_first();
    void drop(express_drop reason) noexcept { ++dropped_[reason]; }
    static void serve(void* self);
    [[nodiscard]] bool serve_one();
    void handle_death();
    template <typename Condition>
    [[nodiscard]] int wait_until(Condition condition, Nanos at_most);

    ulc_endpoint* ep_ = nullptr;
    pthread_t thread_{};
    int rank_ = -1;
    std::unique_ptr<Scheduler> scheduler_;
    Pool pool_;
    std::vector<express_handler> handlers_;
    std::unordered_map<express_handler, std::uint16_t> numbers_;  ///< place of each in handlers_
    std::vector<Peer> peers_;
    std::uint64_t id_ = 0;
    express_death_handler on_death_ = nullptr;
    std::array<unsigned long, EXPRESS_DROPS> dropped_{};
    std::array<unsigned long, 2> handled_{};  ///< messages that were polled; in upcalls

    Work work_;
    Buffer* unsent_ = nullptr;  ///< sent by the program, not taken by libulc yet
    Buffer** unsent_end_ = &unsent_;
    Queue room_;            ///< threads that wait for memory
    Queue changed_;         ///< threads that wait for peers, or for the end of sends
    std::size_t sent_ = 0;  ///< buffers that libulc has not released
    SyncRounds rounds_;
    /// User messages that were handled, by the parity of their senders' calls of express_sync()
    std::array<std::uint64_t, 2> finished_{};
    int broken_ = ULC_OK;  ///< error of all later express_sync()
    unsigned deaths_to_handle_ = 0;
    Thread* first_ = nullptr;  ///< the thread that called init()
    Nanos looked_at_ = 0;      ///< when all peers were
    bool is_begun_ = false;    ///< all processes have agreed
    bool syncs_ = false;
    bool mismatches_ = false;
    // Written by this thread, and by a signal handler on it.
    bool may_interrupt_ = true;
    volatile bool computes_ = false;   ///< the promise is revoked
    volatile bool in_upcall_ = false;  ///< on_upcall() runs on the interrupted thread's stack
};

}  // namespace ulc::express
