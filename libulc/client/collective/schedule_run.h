// SPDX-License-Identifier: BSD-3-Clause
// A schedule carried out by the library: exec::Executor on one side, requests of this endpoint on
// the other. coll/ makes schedules and starts them here. The engine carries out one that may be
// offloaded (client/collective/offload.h), except for messages that came before it. If the engine
// has no space for it, or those messages were too many, the library carries it out.
//
//   start ─▶ [ running ] ──all steps done──▶ done
//                 │ a request failed, a message had another length, a member died or disagrees
//                 ▼
//            [ failing ] ── receives cancelled, all requests have ended ──▶ failed
//
// All messages of one run carry one tag, made of the group handle and the group's operation number.
// Members start the same operations of a group in the same order, so the numbers agree. Operations
// of one group or of several may be under way at once. The tag also carries a signature of the
// arguments (client/groups/signature.h), which receives do not ask for but compare, and whether the
// message is the member's last to us (abi::kTagLast). A member that finds another signature tells
// all members by an empty message with a reserved signature. Members look for that message whenever
// an operation of the group does not move (member_watch.h); all later operations fail. A member
// that waits for long asks (client/groups/inquiry.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "abi/schedule.h"
#include "client/collective/member_watch.h"
#include "client/collective/offload.h"
#include "client/ulc.h"
#include "exec/executor.h"

namespace ulc::client {

/// The caller's memory, untouched until the run is over.
struct RunMemory {
    const void* input = nullptr;
    std::uint64_t input_octets = 0;
    void* output = nullptr;
    std::uint64_t output_octets = 0;
    exec::ReduceOp reduce = {};  ///< only a schedule with reductions has one
};

class ScheduleRun {
public:
    ScheduleRun() = default;
    ScheduleRun(const ScheduleRun&) = delete;
    ScheduleRun& operator=(const ScheduleRun&) = delete;

    /// Starts, or starts a run that is over again with the same arguments. The schedule's arrays,
    /// the memory and this object stay until it is over. offload: to the engine, if it suits
    /// (OffloadRun) and has space; starts once. Returns ULC_OK, or with nothing started: INVALID
    /// (no member, a wrong schedule), NO_MEMORY, LIMIT (see Operations), MISMATCH (one before).
    [[nodiscard]] int start(ulc_endpoint* ep, ulc_group group, const abi::Schedule& schedule,
                            const RunMemory& memory, const RunIdentity& identity = {},
                            bool offload = false) noexcept;

    /// Advances with what the last ulc_poll() brought; bounded work. ULC_OK: done. AGAIN: under
    /// way. Else it failed and no request is under way: PEER_LEFT, PEER_DIED, MISMATCH, CLOSED, …
    [[nodiscard]] int test() noexcept;

    /// test() until it is over, ulc_wait() in between. AGAIN: timeout_ns passed, still under way.
    [[nodiscard]] int wait(std::int64_t timeout_ns) noexcept;

private:
    enum Own : std::uint8_t { kEngines = 0, kPosted = 1, kHere = 2 };

    /// test() has more to do at once: poll, do not wait.
    [[nodiscard]] bool busy() const noexcept {
        return error_ == ULC_OK && !away_ && (look_again_ || executor_->local_work_left());
    }
    [[nodiscard]] int prepare(exec::Setup& setup, bool& offload) noexcept;
    [[nodiscard]] std::uint64_t tag_of(std::uint32_t step) const noexcept;
    void hand_over(const exec::Setup& setup) noexcept;
    void take_early() noexcept;
    void receive_here(std::uint32_t index) noexcept;
    [[nodiscard]] bool settle_offload() noexcept;
    [[nodiscard]] bool start_ready() noexcept;
    [[nodiscard]] int start_step(std::uint32_t index) noexcept;
    [[nodiscard]] bool take_finished() noexcept;
    [[nodiscard]] int freed() const noexcept;
    void judge_receive(std::uint32_t step, const ulc_status& status) noexcept;
    void look_at_members() noexcept;
    void mismatch(std::uint16_t rank, const char* what) noexcept;
    [[nodiscard]] bool told_all() noexcept;
    void end() noexcept;
    void fail(int error) noexcept;

    RunPlace at_;
    MemberWatch watch_;
    std::optional<exec::Executor> executor_;
    std::unique_ptr<ulc_request[]> requests_;     ///< one a step, where it stays
    std::unique_ptr<std::uint32_t[]> in_flight_;  ///< steps with a request under way
    std::uint32_t in_flight_count_ = 0;
    std::unique_ptr<unsigned char[]> scratch_;  ///< unless it is offload_'s
    // --- offload
    OffloadRun offload_;
    abi::Schedule schedule_{};
    std::vector<std::uint8_t>
        own_;                  ///< by step, of messages: Own; empty: was never to be handed over
    bool away_ = false;        ///< handed over, and nothing was heard of it
    bool look_again_ = false;  ///< test() stopped at its bound
    int error_ = ULC_OK;
};

}  // namespace ulc::client
