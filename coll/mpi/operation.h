// SPDX-License-Identifier: BSD-3-Clause
// Holds one pending collective: buffers, operation of coll.h, and request to complete. A blocking
// call drives its own; the session drives those of non-blocking calls. Operations on one
// communicator start in the order of the calls.
#pragma once

#include <coll.h>

#include <memory>
#include <new>
#include <utility>

#include "coll/mpi/session.h"

namespace ulc::mpi {

class Operation {
public:
    Operation(ulc_mpi_comm& comm, const char* name, ulc_mpi_pending* pending)
        : comm_(&comm), name_(name), pending_(pending) {}
    virtual ~Operation() = default;
    Operation(const Operation&) = delete;
    Operation& operator=(const Operation&) = delete;

    /// Starts and advances it; the lock is held. Returns ULC_ERR_AGAIN while it is in progress.
    [[nodiscard]] int step();
    /// Puts the results where they belong; without the lock. False: the MPI could not unpack.
    [[nodiscard]] virtual bool finish() = 0;
    /// Makes a persistent operation ready for its next start; without the lock. False: the MPI
    /// could not pack, or there is no memory.
    [[nodiscard]] bool rewind();

    /// Frees what it keeps of coll.h; the lock is held.
    void drop_kept();
    /// Takes the next place in the order of its communicator; the lock is held.
    void queue() { ticket_ = comm_->issued++; }
    [[nodiscard]] ulc_mpi_comm& comm() { return *comm_; }
    [[nodiscard]] const char* name() const { return name_; }
    /// The request to complete; nullptr: a blocking call.
    [[nodiscard]] ulc_mpi_pending* pending() { return pending_; }
    [[nodiscard]] bool is_persistent() const {
        return pending_ != nullptr && pending_->is_persistent != 0;
    }

    Operation* next = nullptr;  ///< the session's list
    int outcome = ULC_ERR_AGAIN;

protected:
    static constexpr std::size_t kSlots = 2;  ///< pieces in progress at once

    /// Sets the number of operations of coll.h that it consists of.
    void split(std::size_t pieces) { pieces_ = given_pieces_ = pieces; }

private:
    /// Starts a piece, and takes its result when it is over; in the order of pieces.
    virtual int start(std::size_t piece, ulc_coll** out) = 0;
    virtual bool take_result(std::size_t /*piece*/) { return true; }
    /// Fetches the input again. False: see rewind().
    [[nodiscard]] virtual bool refill() = 0;
    [[nodiscard]] int start_next(ulc_coll** out);
    [[nodiscard]] bool start_pieces();
    [[nodiscard]] bool is_under_way() const { return ended_ < begun_; }

    ulc_mpi_comm* comm_;
    const char* name_;
    ulc_mpi_pending* pending_;
    ulc_coll* colls_[kSlots] = {};  ///< pieces in progress; nullptr: over
    ulc_coll* kept_ = nullptr;      ///< started before; persistent operations of one piece have it
    std::size_t pieces_ = 1;
    std::size_t given_pieces_ = 1;  ///< a failure reduces the others
    std::size_t begun_ = 0;
    std::size_t ended_ = 0;
    std::uint64_t ticket_ = 0;
    int failure_ = ULC_OK;
};

/// The data of an operation without buffers.
struct NoData {
    [[nodiscard]] static bool refill() { return true; }
};

/// An operation made of its buffers, a function that starts it and one that gives them back.
template <typename Data, typename Start, typename Finish>
class Collective final : public Operation {
public:
    Collective(ulc_mpi_comm& comm, const char* name, ulc_mpi_pending* pending, Data data,
               Start start, Finish finish)
        : Operation(comm, name, pending),
          data_(std::move(data)),
          start_(std::move(start)),
          finish_(std::move(finish)) {}
    [[nodiscard]] bool finish() override { return finish_(data_); }

private:
    int start(std::size_t, ulc_coll** out) override { return start_(data_, out); }
    bool refill() override { return data_.refill(); }

    Data data_;
    Start start_;
    Finish finish_;
};

/// Performs `start(data, ulc_coll**)`, then `finish(data)`. Blocking if pending is nullptr: returns
/// when it is over. Else returns when it has begun, and ULC_OK promises a call of pending->done().
/// If pending is persistent, only prepares.
template <typename Data, typename Start, typename Finish>
[[nodiscard]] int perform(ulc_mpi_comm& comm, const char* name, ulc_mpi_pending* pending, Data data,
                          Start start, Finish finish) {
    std::unique_ptr<Operation> operation(new (std::nothrow) Collective<Data, Start, Finish>(
        comm, name, pending, std::move(data), std::move(start), std::move(finish)));
    if (!operation) return ULC_ERR_NO_MEMORY;
    return session().perform(std::move(operation));
}

/// Completes a call without bytes to move.
[[nodiscard]] inline int perform_nothing(ulc_mpi_pending* pending) {
    if (pending != nullptr && pending->is_persistent == 0) pending->done(pending, ULC_OK);
    return ULC_OK;
}

}  // namespace ulc::mpi
