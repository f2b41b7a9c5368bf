// SPDX-License-Identifier: BSD-3-Clause
// The endpoint and the job of this process, as the collectives of coll/mpi use them. One object for
// a process, because an MPI has one world. Used by communicator.cc, collectives.cc, reductions.cc.
#pragma once

#include <coll.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "coll/mpi/core.h"
#include "coll/mpi/pace.h"

namespace ulc::mpi {

/// Monotonic time.
[[nodiscard]] Nanos now();

class Operation;

class Session {
public:
    [[nodiscard]] int open(const ulc_mpi_hooks* hooks, ulc_mpi_card& card);
    void decline(const char* why);
    [[nodiscard]] int join(const char* job, std::uint32_t rank, std::uint32_t size,
                           const ulc_mpi_card* cards);
    [[nodiscard]] int progress();
    void close(std::uint32_t rank);

    /// Waits until the job has formed or failed, at most kJoinMax. True: it has formed.
    [[nodiscard]] bool wait_formed();

    /// Queues an operation behind those of its communicator. Blocking: drives it to its end.
    /// Persistent: only keeps it for start().
    [[nodiscard]] int perform(std::unique_ptr<Operation> operation);
    /// Begins a persistent operation, or frees it.
    [[nodiscard]] int start(ulc_mpi_pending& pending);
    void release(ulc_mpi_pending& pending);

    /// Calls `done()` with the lock held, and the MPI's progress without it (as `Pace` says), until
    /// `done()` returns true. False: `limit` passed, whatever else completed meanwhile.
    template <typename Done>
    [[nodiscard]] bool drive(Nanos limit, Done&& done) {
        const Waiting waiting;
        Pace& pace = pace_of_thread();
        pace.begin();
        const Nanos deadline = limit == kNever ? kNever : now() + limit;
        for (bool passed = false;;) {
            auto found = Pace::Found::kNothing;
            Operation* finished = nullptr;
            {
                const std::lock_guard<std::mutex> hold(lock_);
                const unsigned polls = pace.polls();
                for (unsigned n = 0; n < polls; ++n) {
                    if (done()) return true;
                    if (ulc_poll(ep_) > 0) found = Pace::Found::kCompletion;
                }
                if (found == Pace::Found::kNothing && ulc_empty_polls(ep_) < polls)
                    found = Pace::Found::kFrames;
                finished = advance();
            }
            if (finished != nullptr) found = Pace::Found::kCompletion;
            complete(finished);
            if (passed) return false;  // and `done()` has seen what came before
            passed = end_round(pace, found) >= deadline;
        }
    }

    [[nodiscard]] const ulc_mpi_hooks& hooks() const { return *hooks_; }
    [[nodiscard]] ulc_endpoint* endpoint() { return ep_; }
    [[nodiscard]] std::mutex& lock() { return lock_; }
    [[nodiscard]] bool is_open() const { return ep_ != nullptr; }
    /// True if ranks of one node use ULC among themselves too.
    [[nodiscard]] bool same_node() const { return same_node_; }

    void count(ulc_mpi_op op, ulc_mpi_way way) {
        counts_[op][way].fetch_add(1, std::memory_order_relaxed);
    }

private:
    /// Remembers from one wait to the next whether the thread shares its core.
    [[nodiscard]] static Pace& pace_of_thread() noexcept;

    /// Marks this thread as one that polls already, for the progress that it drives.
    class Waiting {
    public:
        Waiting() { ++depth; }
        ~Waiting() { --depth; }
        Waiting(const Waiting&) = delete;
        Waiting& operator=(const Waiting&) = delete;
        static thread_local unsigned depth;
    };

    /// Queues an operation and takes its first step; AGAIN: it is one of the session's list.
    [[nodiscard]] int begin(Operation& operation);
    /// Ends an operation that began and is over, without the lock. Returns its result.
    [[nodiscard]] int conclude(Operation& operation, int state);
    /// Advances the non-blocking operations; the lock is held. Returns a list of those finished.
    [[nodiscard]] Operation* advance();
    /// Completes the requests of a list and frees it; without the lock.
    void complete(Operation* finished);
    /// Drives the MPI's progress if it is due, and gives the core away if nothing moved for long.
    /// Called without the lock. Returns the time.
    Nanos end_round(Pace& pace, Pace::Found found);
    /// Gives the operations of freed communicators a second when the MPI ends.
    void finish_operations();
    /// name: nullptr for an operation that the program did not ask for, which fails silently.
    void say_failure(const char* name, int error);
    void print_account(std::uint32_t rank) const;

    const ulc_mpi_hooks* hooks_ = nullptr;
    ulc_endpoint* ep_ = nullptr;
    std::mutex lock_;             ///< guards the endpoint
    Operation* first_ = nullptr;  ///< non-blocking operations, in the order of the calls
    Operation** last_ = &first_;
    std::atomic<bool> joining_{false};
    bool same_node_ = false;
    /// The reason for not using ULC, for the account; empty: it is used. `lock_` guards it.
    std::string why_not_ = "it was not opened";
    std::atomic<bool> failure_said_{false};
    std::atomic<std::uint64_t> counts_[ULC_MPI_OPS][ULC_MPI_WAYS] = {};
};

[[nodiscard]] Session& session();

/// Frees a communicator whose last operation is over, the lock held.
void forget(ulc_mpi_comm& comm);
/// Ends a communicator without persistent operations that the MPI has freed.
void end(ulc_mpi_comm& comm);

}  // namespace ulc::mpi

/// A communicator of the MPI as the core knows it. The session's lock guards the counters.
struct ulc_mpi_comm {
    std::uint16_t* ranks = nullptr;  ///< ranks of the job, by rank of the communicator
    std::uint16_t count = 0;
    std::uint16_t self = 0;  ///< own rank in the communicator
    bool whole = false;
    std::uint64_t key = 0;
    bool decided = false;
    bool owns_group = false;
    bool forming = false;  ///< `request` is libulc's still
    bool left = false;     ///< the MPI freed it; persistent operations exist
    bool orderly = false;  ///< with `left`: all members do
    bool freed = false;    ///< by the MPI; operations are pending
    ulc_mpi_way way = ULC_MPI_NO_JOB;
    std::uint64_t issued = 0;   ///< operations, the next one's ticket
    std::uint64_t started = 0;  ///< ticket of the operation that may start
    unsigned under_way = 0;     ///< operations started and not over
    unsigned pending = 0;       ///< non-blocking operations not over
    unsigned persistent = 0;    ///< prepared operations
    ulc_group group = 0;
    ulc_request request;
};
