// SPDX-License-Identifier: BSD-3-Clause
// The process of a GAMMA program: its endpoints, its ports, and the one place where handlers run.
//
//   gamma_…() ──▶ Call ──▶ has the endpoint … deliver(), gives it up ──▶ the program computes
//                                                                         │ upcall
//                                             deliver() ◀─────────────────┘
//   deliver(): one message after the other: claim, copy into the port's buffer, run the handler
//
// Threads. The thread that called gamma_init() has the endpoint by its promise to poll, others
// borrow it (ulc_upcall.h), in the order in which they called (Turns). One of the
// threads that wait polls, in short slices; the others sleep until it has found something.
//
// Used by gamma.cc. Invariant: only the thread that has the endpoint touches objects that are not
// atomic, and it does not enter deliver() twice, so that handlers are serial.
#pragma once

#include <pthread.h>
#include <ulc_upcall.h>

#include <array>
#include <atomic>
#include <bitset>
#include <cstdint>

#include "base/units.h"
#include "ports/endpoints.h"
#include "ports/groups.h"
#include "ports/others.h"
#include "ports/port_table.h"
#include "ports/sessions.h"
#include "ports/turns.h"
#include "ports/way.h"

namespace ulc::ports {

enum class SendMode : std::uint8_t {
    kFast,       ///< copied
    kTaken,      ///< the engine has taken it
    kDelivered,  ///< every receiver's engine has it
};

/// Members that must not leave during a wait. None must die.
enum class Needs : std::uint8_t { kNobody, kMaster, kAll };

inline constexpr Nanos kLookEvery = 100 * kMillisecond;  ///< whether all members live, in a wait

class Process {
public:
    /// Joins the job of the environment, or starts one on the hosts of the host file. Returns false
    /// after a failure, which was printed.
    [[nodiscard]] bool init(int num_nodes, int argc, char** argv);
    [[nodiscard]] bool exit();
    /// Waits for the instances that init() started, at the end of the program.
    void finish() noexcept { others_.finish(); }

    /// True between init() and exit().
    [[nodiscard]] bool is_joined() const noexcept { return ep_ != nullptr; }
    /// True if this thread is the one that called init().
    [[nodiscard]] bool is_first() const noexcept {
        return pthread_equal(thread_, pthread_self()) != 0;
    }
    /// True if this thread is inside a handler or gamma_atomic().
    [[nodiscard]] bool is_serial() const noexcept { return is_inside() && serial_ > 0; }

    void bind(PortNumber number, const Port& port);
    /// Makes the links that a port to another group needs: BROADCAST or one member. Waits, at most
    /// 5 s. False, after a sentence on standard error: there is no such member, or no way to it.
    [[nodiscard]] bool reach(std::uint8_t par_pid, std::uint8_t node);
    [[nodiscard]] bool attach(PortNumber number, void* buffer);
    /// False: the port is not bound for output, or the message did not leave, which was raised at
    /// the port.
    [[nodiscard]] bool send(PortNumber number, const void* data, std::size_t length, SendMode mode);
    /// Waits as gamma_wait() says; not in handlers.
    [[nodiscard]] int wait(std::uint8_t semaphore, unsigned long wanted);
    void run_atomically(void (*function)());
    /// Passes the barrier of gamma_sync(); not in handlers. False: a member is gone.
    [[nodiscard]] bool synchronise();

    void signal(std::uint8_t semaphore) noexcept {
        ++signals_[semaphore];
        tell_followers();
    }
    void signal_error(std::uint8_t semaphore) noexcept { ++errors_[semaphore]; }
    [[nodiscard]] unsigned long value(std::uint8_t semaphore) const noexcept {
        return signals_[semaphore].load();
    }

    [[nodiscard]] int node() const noexcept { return node_; }
    [[nodiscard]] int nodes() const noexcept { return nodes_; }
    [[nodiscard]] int par_pid() const noexcept { return par_pid_; }

private:
    class Call;
    /// A message on its way into its port's buffer.
    struct Arrival {
        bool under_way = false;
        PortNumber port = 0;
        ulc_endpoint* from = nullptr;
        Place place;
        ulc_request request;
    };

    [[nodiscard]] int join(int num_nodes, int argc, char** argv);
    [[nodiscard]] int join_with_others();
    /// True if this instance is one of the group's; else a sentence was printed.
    [[nodiscard]] bool belongs(int instances) const;
    /// Makes the group of the first nodes_ instances, if the job has more. False: a member is gone.
    [[nodiscard]] bool make_group(int instances);
    /// True if this thread has the endpoint.
    [[nodiscard]] bool is_inside() const noexcept { return owner_.load() == pthread_self(); }
    void take_endpoint() noexcept;
    void give_endpoint() noexcept;
    void end_call() noexcept;
    [[nodiscard]] int set_upcall(ulc_endpoint* ep);
    void on_upcall(ulc_endpoint* from);
    [[nodiscard]] int pause(std::uint32_t seen);
    [[nodiscard]] int wait_a_while(Nanos limit);
    [[nodiscard]] int lead(std::uint32_t seen);
    [[nodiscard]] int follow(std::uint32_t seen);
    void tell_followers() noexcept;
    void deliver();
    [[nodiscard]] bool deliver_next(ulc_endpoint* from);
    void begin(ulc_endpoint* from, ulc_message* message, const ulc_status& status);
    [[nodiscard]] bool finish_arrival();
    void end_arrival(const ulc_status& status);
    void raise_failures();
    void raise(PortNumber number, Fault fault);
    void run(PortNumber number, gamma_handler handler, Fault fault);
    void on_internal(PortNumber number, std::uint16_t source);
    void settle_arrival(PortNumber number);
    [[nodiscard]] int submit(Way& way, const Port& port, PortNumber number, const void* data,
                             std::size_t length, ulc_request* request, unsigned flags);
    [[nodiscard]] bool send_by(Way& way, const Port& port, PortNumber number, const void* data,
                               std::size_t length, SendMode mode);
    [[nodiscard]] int complete(ulc_endpoint* ep, ulc_request& request,
                               ulc_status* status = nullptr);
    [[nodiscard]] bool may_go_on(int waited);
    [[nodiscard]] bool send_to_group(const Port& port, PortNumber number, const void* data,
                                     std::size_t length, SendMode mode);
    [[nodiscard]] bool send_to(Groups::Member& member, const Port& port, PortNumber number,
                               const void* data, std::size_t length, SendMode mode);
    [[nodiscard]] bool link(Groups::Member& member);
    // --- guest sessions (guests.cc)
    void be_guest_of(std::uint8_t par_pid, unsigned instances);
    [[nodiscard]] bool say_to_all(const Sessions::Host& host, std::uint64_t tag,
                                  const ulc_piece& piece);
    [[nodiscard]] bool form(Sessions::Host& host, const Sessions::Invitation& words);
    [[nodiscard]] int wait_for_words();
    static void end_host(Sessions::Host& host);
    [[nodiscard]] bool on_invitation(ulc_message* message, const ulc_status& status);
    void admit_guests();
    [[nodiscard]] bool admit(const Sessions::Invited& invited);
    [[nodiscard]] bool deliver_of_guests();
    void end_left_sessions();
    void end_guest(Sessions::Guest& guest);
    void end_sessions();
    [[nodiscard]] bool take_word(ulc_message* message, const ulc_status& status);
    void take_words();
    // ---
    [[nodiscard]] bool tell(std::uint8_t node, PortNumber number);
    template <typename Condition>
    [[nodiscard]] bool wait_until(Condition condition, Needs needs);
    [[nodiscard]] bool is_broken(Needs needs) const noexcept;
    [[nodiscard]] bool wait_for_all();
    [[nodiscard]] bool shows_gap(const ulc_endpoint* from, const ulc_status& status) noexcept;

    ulc_endpoint* ep_ = nullptr;
    pthread_t thread_{};
    Turns turns_;
    std::atomic<pthread_t> owner_{};      ///< the thread that has the endpoint; 0: none
    std::atomic<bool> is_shared_{false};  ///< a thread but the first has called
    std::atomic<bool> is_over_{false};    ///< the first thread's promise cannot be revoked any more
    Endpoints endpoints_;                 ///< the own group's is the first
    ulc_endpoint* interrupter_ = nullptr;  ///< the endpoint whose upcall runs
    bool is_borrowed_ = false;
    bool is_led_ = false;                    ///< a thread that waits polls
    std::atomic<std::uint32_t> changes_{0};  ///< futex: something that a thread may wait for
    std::atomic<unsigned> followers_{0};     ///< threads that sleep on it
    int node_ = -1;
    int nodes_ = -1;
    int par_pid_ = -1;
    Others others_;             ///< started by this process
    Groups groups_;             ///< other groups than the own one
    Sessions sessions_;         ///< with them
    bool acknowledges_ = true;  ///< the profile can tell that a message was delivered
    unsigned serial_ = 0;       ///< handlers and atomic functions in progress
    PortTable ports_;
    Arrival arrival_;
    std::bitset<GAMMA_PORTS> failed_;  ///< a send through it failed, not reported yet
    Way own_;                          ///< to the own group
    std::array<Expected, GAMMA_NODES_MAX> expected_{};
    unsigned entered_ = 0;  ///< messages of barriers, not waited for yet
    unsigned released_ = 0;
    std::array<std::atomic<unsigned long>, GAMMA_PORTS> signals_{};
    std::array<std::atomic<unsigned long>, GAMMA_PORTS> errors_{};
};

/// One call of the program: has the endpoint, and lets handlers run at its end. Neither in handlers
/// and atomic functions, whose caller does it.
class Process::Call {
public:
    explicit Call(Process& process) : process_(process), outermost_(!process.is_inside()) {
        if (outermost_) process_.take_endpoint();
    }
    ~Call() {
        if (outermost_) process_.end_call();
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

private:
    Process& process_;
    bool outermost_;
};

}  // namespace ulc::ports
