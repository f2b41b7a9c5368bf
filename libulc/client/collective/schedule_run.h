// A schedule carried out by the library: exec::Executor on one side, requests of this endpoint on the other.
// coll/ makes schedules and starts them here. The engine carries out one that may be offloaded
// (client/collective/offload.h), except for messages that came before it. If the engine has no
// space for it, or those messages were too many, the library carries it out.
//
//   start ─▶ [ running ] ──all steps done──▶ done
//                 │ a request failed, a message had another length, a member died or is of another mind
//                 ▼
//            [ failing ] ── receives cancelled, what is under way has ended ──▶ failed
//
// All messages of one run carry one tag, made of the group handle and the group's operation number: members start
// the same operations of a group in the same order, so the numbers agree, and operations of one group or of several
// may be under way at once. The tag also carries a signature of the arguments
// (client/groups/signature.h), which receives do not ask for but compare, and whether the message
// is the member's last to us (abi::kTagLast). A member that finds another signature tells all
// members by an empty message with a reserved signature. Members look for that message whenever
// an operation of the group does not move; all later operations fail. A member that waits for
// long asks (client/groups/inquiry.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "abi/schedule.h"
#include "client/collective/offload.h"
#include "client/groups/signature.h"
#include "client/ulc.h"
#include "exec/executor.h"

namespace ulc::client {

/// The caller's memory, untouched until the run is over.
struct RunMemory {
    const void* input = nullptr;
    std::uint64_t input_octets = 0;
    void* output = nullptr;
    std::uint64_t output_octets = 0;
    exec::ReduceOp reduce = {};  ///< of a schedule with reductions
};

/// What an operation is called in errors, and what its members must agree on.
struct RunIdentity {
    const char* name = "collective";  ///< stays
    Agreement agreement;
};

class ScheduleRun {
public:
    ScheduleRun() = default;
    ScheduleRun(const ScheduleRun&) = delete;
    ScheduleRun& operator=(const ScheduleRun&) = delete;

    /// Starts. The schedule's arrays and the memory stay until test() said that it is over; so does this object.
    /// offload: hand it to the engine, if it suits (OffloadRun) and there is room.
    /// Returns ULC_OK, or without having started anything: INVALID (not a member, or a wrong schedule), NO_MEMORY,
    /// LIMIT (see Operations), MISMATCH (of an operation before).
    [[nodiscard]] int start(ulc_endpoint* ep, ulc_group group, const abi::Schedule& schedule,
                            const RunMemory& memory, const RunIdentity& identity = {},
                            bool offload = false) noexcept;

    /// Advances with what the last ulc_poll() brought; bounded work. ULC_OK: done. AGAIN: under way. Else it failed
    /// and nothing of it is under way any more: PEER_LEFT, PEER_DIED, MISMATCH, CLOSED, …
    [[nodiscard]] int test() noexcept;

    /// test() until it is over, ulc_wait() in between. AGAIN: timeout_ns passed, still under way.
    [[nodiscard]] int wait(std::int64_t timeout_ns) noexcept;

private:
    enum Own : std::uint8_t { kEngines = 0, kPosted = 1, kHere = 2 };

    /// test() has more to do at once: poll, do not wait.
    [[nodiscard]] bool busy() const noexcept {
        return error_ == ULC_OK && !away_ && (look_again_ || executor_->local_work_left());
    }
    /// Whether messages say what this member gave.
    [[nodiscard]] bool checks() const noexcept { return identity_.agreement.signature.bits() != 0; }
    [[nodiscard]] std::uint64_t tag_of(std::uint32_t step) const noexcept;
    [[nodiscard]] bool prepare_scratch(bool& offload, exec::Setup& setup) noexcept;
    void hand_over(const exec::Setup& setup) noexcept;
    void take_early() noexcept;
    void receive_here(std::uint32_t index) noexcept;
    [[nodiscard]] bool settle_offload() noexcept;
    [[nodiscard]] bool start_ready() noexcept;
    [[nodiscard]] int start_step(std::uint32_t index) noexcept;
    [[nodiscard]] bool take_finished() noexcept;
    [[nodiscard]] std::uint16_t rank_of(std::uint16_t index) const noexcept;
    [[nodiscard]] int freed() const noexcept;
    void judge_receive(std::uint32_t step, const ulc_status& status) noexcept;
    void look_at_members() noexcept;
    void ask_members() noexcept;
    [[nodiscard]] bool ask_sources() noexcept;
    [[nodiscard]] bool left_over(std::uint16_t rank) const noexcept;
    [[nodiscard]] bool somebody_died() const noexcept;
    void mismatch(std::uint16_t rank, const char* what) noexcept;
    [[nodiscard]] bool told_all() noexcept;
    void end() noexcept;
    void fail(int error) noexcept;

    ulc_endpoint* ep_ = nullptr;
    ulc_group group_ = 0;
    std::uint64_t tag_ = 0;  ///< with the signature; of no message yet, see tag_of()
    RunIdentity identity_;
    std::uint32_t number_ = 0;
    std::optional<exec::Executor> executor_;
    std::unique_ptr<ulc_request[]> requests_;     ///< one a step, where it stays
    std::unique_ptr<std::uint32_t[]> in_flight_;  ///< steps with a request under way
    std::uint32_t in_flight_count_ = 0;
    std::uint16_t members_ = 0;
    std::uint16_t looked_at_ = 0;
    std::uint32_t asked_ = 0;  ///< sources looked at in this inquiry
    unsigned quiet_ = 0;       ///< tests in which nothing moved, since something did
    Nanos ask_at_ = kNever;
    Nanos ask_again_after_ = 0;
    std::unique_ptr<unsigned char[]> scratch_;  ///< unless it is offload_'s
    // --- offload
    OffloadRun offload_;
    abi::Schedule schedule_{};
    std::vector<std::uint8_t>
        own_;                  ///< by step, of messages: Own; empty: was never to be handed over
    bool away_ = false;        ///< handed over, and nothing was heard of it
    bool told_ = false;        ///< after a mismatch: the others have been sent word
    bool look_again_ = false;  ///< test() stopped at its bound
    int error_ = ULC_OK;
};

}  // namespace ulc::client
