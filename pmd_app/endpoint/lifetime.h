// SPDX-License-Identifier: BSD-3-Clause
// The stages in the life of an endpoint, and what its end is to be.
//
//   reserved ─ open() ─▶ open ─ leave() ─▶ leaving ─ end() ─▶ left
//      │                  └───────┬────────────┴───────────────┘
//      │                       linger()
//      │                          ▼
//      │                      lingering ─ end() ─▶ closed    (or at once: no job, no links)
//      └─ removed
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/check.h"
#include "base/error.h"
#include "base/units.h"
#include "wire/job.h"

namespace ulc::state {
class Archive;
}  // namespace ulc::state

namespace ulc::endpoint {

class Lifetime {
public:
    enum class Stage : std::uint8_t {
        kReserved,   ///< has a handle, no memory yet
        kOpen,       ///< serves its client
        kLeaving,    ///< the client submitted kLeave: sends are drained, receives continue
        kLingering,  ///< the client is gone; its data are not acknowledged yet
        kLeft,       ///< has left its job
        kClosed,     ///< done; waits for detach()
    };

    // --- what it is
    [[nodiscard]] bool is_reserved() const noexcept { return stage_ == Stage::kReserved; }
    [[nodiscard]] bool is_open() const noexcept { return stage_ == Stage::kOpen; }
    [[nodiscard]] bool is_leaving() const noexcept { return stage_ == Stage::kLeaving; }
    [[nodiscard]] bool is_lingering() const noexcept { return stage_ == Stage::kLingering; }
    [[nodiscard]] bool is_closed() const noexcept { return stage_ == Stage::kClosed; }
    /// True until it has left its job and takes no more frames.
    [[nodiscard]] bool takes_frames() const noexcept { return stage_ < Stage::kLeft; }
    /// True if its data are on their way while it leaves, or after its client has ended.
    [[nodiscard]] bool ends() const noexcept { return is_leaving() || is_lingering(); }
    /// True if its client may hear of it: it is not gone.
    [[nodiscard]] bool has_client() const noexcept { return !is_lingering() && !is_closed(); }
    /// True if the engine reads records from the client's memory, and writes to it.
    [[nodiscard]] bool has_memory() const noexcept { return has_memory_; }
    /// True if its owner has released it.
    [[nodiscard]] bool is_detached() const noexcept { return is_detached_; }
    /// True if nothing keeps it any more.
    [[nodiscard]] bool is_over() const noexcept { return is_closed() && is_detached_; }
    /// Returns why the engine ended its client; kOk: it did not.
    [[nodiscard]] Err closed() const noexcept { return closed_; }
    /// Returns what its peers hear when it leaves.
    [[nodiscard]] wire::LeaveReason reason() const noexcept { return reason_; }
    /// Returns when what is not acknowledged is given up.
    [[nodiscard]] Nanos until() const noexcept { return until_; }

    // --- what becomes of it
    void open() noexcept {
        ULC_CHECK(is_reserved());
        stage_ = Stage::kOpen;
        has_memory_ = true;
    }
    void leave(Nanos until) noexcept {
        ULC_CHECK(is_open());
        stage_ = Stage::kLeaving;
        until_ = until;
    }
    /// Begins the end of an endpoint whose client is gone. has_peers: they may lack data of its.
    void linger(wire::LeaveReason reason, Nanos until, bool has_peers) noexcept {
        ULC_CHECK(has_client() && !is_reserved());
        stage_ = has_peers ? Stage::kLingering : Stage::kClosed;
        reason_ = reason;
        until_ = until;
    }
    /// Gives what is not acknowledged up at that time at the latest.
    void hurry(Nanos until) noexcept { until_ = std::min(until_, until); }
    /// Ends the wait: its peers have its data, or do not get them any more.
    void end() noexcept {
        ULC_CHECK(ends());
        stage_ = is_leaving() ? Stage::kLeft : Stage::kClosed;
    }
    void lose_memory() noexcept { has_memory_ = false; }
    void close(Err how) noexcept { closed_ = how; }
    void detach() noexcept { is_detached_ = true; }

    /// Returns whether its stage and its memory go together.
    [[nodiscard]] bool is_valid() const noexcept {
        return has_memory_ ? !is_reserved() : !is_open() && !is_leaving();
    }
    void fields(state::Archive& archive);

private:
    Stage stage_ = Stage::kReserved;
    bool has_memory_ = false;
    bool is_detached_ = false;
    wire::LeaveReason reason_ = wire::LeaveReason::kLeft;
    Err closed_ = Err::kOk;
    Nanos until_ = kNever;
};

}  // namespace ulc::endpoint
