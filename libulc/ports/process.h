// The process of a GAMMA program: its endpoint, its ports, and the one place where handlers run.
//
//   gamma_…() ──▶ Call ──▶ promise to poll … deliver(), revoke ──▶ the program computes
//                                                                   │ upcall
//                                             deliver() ◀───────────┘
//   deliver(): one message after the other: claim, copy into the port's buffer, run the handler
//
// Used by gamma.cc. Invariant: deliver() is never entered twice, so that handlers are serial.
#pragma once

#include <pthread.h>
#include <ulc_upcall.h>

#include <array>
#include <atomic>
#include <bitset>
#include <cstdint>

#include "ports/port_table.h"

namespace ulc::ports {

enum class SendMode : std::uint8_t {
    kFast,       ///< copied
    kTaken,      ///< the engine has taken it
    kDelivered,  ///< every receiver's engine has it
};

/// Members that must not leave during a wait. None must die.
enum class Needs : std::uint8_t { kNobody, kMaster, kAll };

class Process {
public:
    /// Joins the job of the environment. False: failed; a sentence was printed.
    [[nodiscard]] bool init(int num_nodes);
    [[nodiscard]] bool exit();

    /// True if this thread may call, i.e. is the one that called init().
    [[nodiscard]] bool is_callers() const noexcept {
        return ep_ != nullptr && pthread_equal(thread_, pthread_self()) != 0;
    }
    /// True if no handler may run now: one runs, or gamma_atomic().
    [[nodiscard]] bool is_serial() const noexcept { return serial_ > 0; }

    [[nodiscard]] const Port& port(PortNumber number) noexcept { return ports_[number]; }
    void bind(PortNumber number, const Port& port);
    [[nodiscard]] bool attach(PortNumber number, void* buffer);
    /// False: the message did not leave; the failure was raised at the port.
    [[nodiscard]] bool send(PortNumber number, const void* data, std::size_t length, SendMode mode);
    /// Waits as gamma_wait() says; not in handlers.
    [[nodiscard]] int wait(std::uint8_t semaphore, unsigned long wanted);
    void run_atomically(void (*function)());
    /// Passes the barrier of gamma_sync(); not in handlers. False: a member is gone.
    [[nodiscard]] bool synchronise();

    void signal(std::uint8_t semaphore) noexcept { ++signals_[semaphore]; }
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
        Place place;
        ulc_request request;
    };

    /// Numbers of the next messages of a member.
    struct Expected {
        std::uint64_t to_me = 0;
        std::uint64_t to_all = 0;
    };

    void begin_call() noexcept;
    void end_call() noexcept;
    void deliver();
    void begin(ulc_message* message, const ulc_status& status);
    [[nodiscard]] bool finish_arrival();
    void end_arrival(const ulc_status& status);
    void raise_failures();
    void raise(PortNumber number, Fault fault);
    void run(PortNumber number, gamma_handler handler, Fault fault);
    void on_internal(PortNumber number, std::uint16_t source);
    void settle_arrival(PortNumber number);
    [[nodiscard]] int submit(const Port& port, PortNumber number, const void* data,
                             std::size_t length, ulc_request* request, unsigned flags);
    [[nodiscard]] int complete(ulc_request& request);
    [[nodiscard]] bool tell(std::uint8_t node, PortNumber number);
    template <typename Condition>
    [[nodiscard]] bool wait_until(Condition condition, Needs needs);
    [[nodiscard]] bool is_broken(Needs needs) const noexcept;
    [[nodiscard]] bool wait_for_all();
    [[nodiscard]] bool shows_gap(const ulc_status& status) noexcept;
    static void on_fault(void* context, int error, std::uint16_t source, std::uint64_t count);

    ulc_endpoint* ep_ = nullptr;
    pthread_t thread_{};
    int node_ = -1;
    int nodes_ = -1;
    int par_pid_ = -1;
    bool acknowledges_ = true;  ///< the profile can tell that a message was delivered
    unsigned serial_ = 0;       ///< handlers and atomic functions under way
    PortTable ports_;
    Arrival arrival_;
    std::bitset<GAMMA_PORTS> failed_;                ///< a send through it failed, not told yet
    std::array<std::uint64_t, GAMMA_PORTS> sent_{};  ///< messages by node, or BROADCAST
    std::array<Expected, GAMMA_NODES_MAX> expected_{};
    PortNumber sent_through_ = 0;  ///< the last
    unsigned entered_ = 0;         ///< messages of barriers, not waited for yet
    unsigned released_ = 0;
    std::array<std::atomic<unsigned long>, GAMMA_PORTS> signals_{};
    std::array<std::atomic<unsigned long>, GAMMA_PORTS> errors_{};
};

}  // namespace ulc::ports
