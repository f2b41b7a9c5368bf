// SPDX-License-Identifier: BSD-3-Clause
// The schedule executor: a sans-IO state machine that runs one member's part of a collective. It is
// notified of completions and returns the step to start; it knows no endpoint, clock or wire.
// libulc, the engine (offload) and the simulator link this same object.
//
//            waits > 0          waits = 0            started()            complete()
//   step:   [ kWaiting ] ───────▶ [ kReady ] ──────▶ [ kStarted ] ──────▶ [ kDone ]
//                ▲                                      │ kOnStart            │ kOnDone
//                └────────── settle: successors' waits − 1 ◀──────────────────┘
//
// Two kinds of edges hold a step back, both kept as one successor table (compressed rows):
//   kOnDone   dependencies: the earlier step must be done;
//   kOnStart  order: the earlier step must have been started. Outgoing steps (kSend to one peer,
//             kMcast to all) start in index order per receiver, incoming ones (kRecv) in index
//             order per source; the two directions do not hold each other back. A kMcast to a
//             subset is ordered as if it went to all.
// Both only point backwards, so some step can always start or is in progress until all are done.
//
// Work per call is bounded: next() settles at most kEdgesPerCall edges and moves at most
// kLocalOctetsPerCall bytes; the next call continues a larger local step. Memory is allocated once,
// in make().
#pragma once

#include <cstdint>
#include <memory>

#include "abi/schedule.h"
#include "base/error.h"
#include "exec/validate.h"

namespace ulc::exec {

inline constexpr std::uint32_t kEdgesPerCall = 1024;
inline constexpr std::uint64_t kLocalOctetsPerCall = 256 * 1024;

/// (into) = (from) op (with), elementwise over `octets`; pieces end at multiples of `grain`. `into`
/// may be either operand.
struct ReduceOp {
    void (*apply)(void* context, unsigned char* into, const unsigned char* from,
                  const unsigned char* with, std::uint64_t octets) noexcept = nullptr;
    void* context = nullptr;
    std::uint64_t grain = 1;  ///< octets of an element, ≤ kLocalOctetsPerCall
};

/// Member that runs the schedule, and its memory. Input and output may overlap in memory: copies
/// are moves.
struct Setup {
    std::uint16_t members = 1;
    std::uint16_t self = 0;
    const unsigned char* input = nullptr;
    unsigned char* output = nullptr;
    unsigned char* scratch = nullptr;
    std::uint64_t octets[kBuffers] = {0, 0, 0};
    ReduceOp reduce = {};  ///< without apply: reductions are refused
    bool may_copy = true;  ///< as Shape's
    std::uint32_t steps_max = abi::kStepsMax;
};

class Executor {
public:
    /// Validates and prepares. The schedule's arrays and the memory of `setup` must stay until the
    /// executor is gone. Errors: kInvalid, kLimit (*fault says where, if not null), kNoMemory.
    [[nodiscard]] static Result<Executor> make(const abi::Schedule& schedule, const Setup& setup,
                                               Fault* fault = nullptr) noexcept;

    /// Makes the schedule ready to run again, without allocating. Steps that
    /// are under way are forgotten.
    void rewind() noexcept;

    /// Runs local work, then gives the step to start now (kSend, kMcast or kRecv) without taking
    /// it: asking again gives the same one. False: nothing to start now; see local_work_left().
    [[nodiscard]] bool next(std::uint32_t& step) noexcept;
    /// The step that next() gave is under way (or, for a schedule kept elsewhere, has its place in
    /// a queue that keeps order).
    void started() noexcept;
    /// A started step is done. Errors: kInvalid (it is not under way).
    [[nodiscard]] Err complete(std::uint32_t step) noexcept;

    /// next() stopped at its bound: call it again before waiting for anything.
    [[nodiscard]] bool local_work_left() const noexcept {
        return settle_head_ != settle_tail_ || local_head_ != local_tail_;
    }
    [[nodiscard]] bool done() const noexcept { return done_count_ == schedule_.step_count; }
    [[nodiscard]] std::uint32_t in_flight() const noexcept { return in_flight_; }

    [[nodiscard]] const abi::Step& step(std::uint32_t index) const noexcept {
        return schedule_.steps[index];
    }
    /// True for a kSend, kMcast or kRecv if no later one has the same peer and direction; for a
    /// kMcast: no later one at all goes out, so it says the same to all that it goes to only if
    /// what follows goes to all of them (tests/unit/coll/schedules_test.cc).
    [[nodiscard]] bool is_last(std::uint32_t index) const noexcept;
    /// Memory that a kSend or kMcast reads, a kRecv writes.
    [[nodiscard]] const unsigned char* source(const abi::Step& step) const noexcept {
        return read_at(step.buffer, step.offset);
    }
    [[nodiscard]] unsigned char* destination(const abi::Step& step) const noexcept {
        return write_at(step.buffer, step.offset);
    }

private:
    enum class State : std::uint8_t { kWaiting, kReady, kStarted, kDone };

    Executor(const abi::Schedule& schedule, const Setup& setup) noexcept
        : schedule_(schedule), setup_(setup) {}

    [[nodiscard]] Err prepare() noexcept;
    template <typename OnEdge>
    void each_edge(std::uint32_t* last_out, std::uint32_t* last_in, OnEdge on_edge) const noexcept;
    void release(std::uint32_t step) noexcept;
    void release_first() noexcept;
    void finish(std::uint32_t step) noexcept;
    void settle(std::uint32_t& edges_left) noexcept;
    void run_local(std::uint64_t& octets_left) noexcept;
    [[nodiscard]] const unsigned char* read_at(abi::BufferId buffer,
                                               std::uint64_t offset) const noexcept;
    [[nodiscard]] unsigned char* write_at(abi::BufferId buffer,
                                          std::uint64_t offset) const noexcept;

    abi::Schedule schedule_;
    Setup setup_;

    // One block of memory; n steps, e edges. Every step enters `ready_` or `local_` once and
    // `settle_` at most twice (started, done), so these queues need no wrap.
    std::unique_ptr<std::uint32_t[]> block_;
    std::unique_ptr<State[]> state_;
    std::uint32_t* waits_ = nullptr;       ///< n: edges not yet settled
    std::uint32_t* edge_first_ = nullptr;  ///< n + 1
    std::uint32_t* edges_ = nullptr;       ///< e: successor << 1 | kOnDone
    std::uint32_t* ready_ = nullptr;       ///< n
    std::uint32_t* local_ = nullptr;       ///< n
    std::uint32_t* settle_ = nullptr;      ///< 2n: step << 1 | kOnDone

    std::uint32_t ready_head_ = 0, ready_tail_ = 0;
    std::uint32_t local_head_ = 0, local_tail_ = 0;
    std::uint32_t settle_head_ = 0, settle_tail_ = 0;
    std::uint32_t settle_edge_ = 0;   ///< how far the front of settle_ is
    std::uint64_t local_octets_ = 0;  ///< how far the front of local_ is
    std::uint32_t in_flight_ = 0;
    std::uint32_t done_count_ = 0;
};

}  // namespace ulc::exec
