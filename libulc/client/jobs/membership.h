// SPDX-License-Identifier: BSD-3-Clause
// The membership of an endpoint in a job, or among the peers that it is linked to: its state, its
// rank, and the state of each peer. Used by Endpoint, which acts on a transition, and read by the
// objects that handle messages, groups and links.
//
//   kIdle ──join──▶ kForming ──▶ kFormed ──leave──▶ kLeaving ──▶ kClosed
//                      │            └─────the engine ended it─────────▶┘
//                      └──▶ kFailed ──join──▶ …   any ──engine gone, corruption──▶ kClosed
//
// Opening for links takes the same way as a join.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "abi/records.h"
#include "abi/region.h"
#include "base/medium.h"
#include "base/units.h"
#include "client/hooks.h"
#include "client/p2p/submitter.h"
#include "client/p2p/tx_arena.h"
#include "client/ulc.h"

namespace ulc::client {

/// Keeps the settings that ulc_rejoin() repeats to the next engine.
struct Recall {
    std::string engine;       ///< as given to ulc_open()
    std::string profile;      ///< for the next job; empty: the engine's
    Nanos patience = 0;       ///< with nodes of the next job; 0: the engine's
    abi::JoinRequest join{};  ///< the last; name_length 0: none
    std::uint16_t links = 0;  ///< the number it was opened for; 0: none
    ulc_link_address name{};  ///< the name it was opened under; zeros: none
};

class Membership {
public:
    /// The references outlive this. `medium`: as JoinRequest::medium, for jobs whose rank 0 this
    /// is.
    Membership(const abi::Region& region, const Hooks& hooks, Submitter& submitter, TxArena& arena,
               std::uint16_t medium) noexcept
        : region_(region),
          hooks_(hooks),
          submitter_(submitter),
          arena_(arena),
          medium_wanted_(medium) {}

    // --- settings of the next job; as the functions of ulc.h
    [[nodiscard]] int set_profile(std::string_view profile);
    /// Sets how long a peer's node is silent before it counts as dead.
    void set_patience(Nanos patience) noexcept { recall_.patience = patience; }
    void opened_as(std::string engine) noexcept { recall_.engine = std::move(engine); }
    [[nodiscard]] const Recall& recall() const noexcept { return recall_; }
    /// Repeats the settings of another endpoint. Called before it joins.
    void prepare_as(const Recall& other);

    // --- transitions by the application
    [[nodiscard]] int join(const char* job, std::size_t job_octets, std::uint16_t rank,
                           std::uint16_t size, const unsigned char* nonce, Nanos timeout);
    /// Starts ulc_open_links(). `key`: 16 random bytes, not all 0.
    [[nodiscard]] int open_links(std::uint16_t links, const unsigned char* key);
    /// Starts ulc_open_links_as().
    [[nodiscard]] int open_links_as(std::uint16_t links, const ulc_link_address& name);
    /// Begins to leave. Returns false if there is nothing to leave.
    [[nodiscard]] bool begin_leaving() noexcept;
    /// Submits kLeave, if there is space. Called when everything else was submitted.
    void submit_leave() noexcept;

    // --- transitions by the engine. They return false if no correct engine writes the record.
    /// Handles kJobFormed. May throw std::bad_alloc.
    [[nodiscard]] bool on_formed(const abi::CompletionRecord& record);
    /// Handles kLinksOpen. May throw std::bad_alloc.
    [[nodiscard]] bool on_links_open(const abi::CompletionRecord& record);
    /// Handles kJobFailed. A job that had formed has to be ended by end().
    [[nodiscard]] bool on_failed(const abi::CompletionRecord& record);
    /// Handles kLeft, before end().
    void on_left(const abi::CompletionRecord& record) noexcept;
    /// Ends the membership with the endpoint. Allocates and frees nothing.
    void end(int error) noexcept {
        ended_ = error;
        state_ = State::kClosed;
    }

    // --- state
    /// Returns ULC_ERR_… that ended the endpoint; 0: none did.
    [[nodiscard]] int ended() const noexcept { return ended_; }
    [[nodiscard]] int job_state() const noexcept;
    /// Returns OK if a job or links are formed, else why nothing can be sent.
    [[nodiscard]] int may_communicate() const noexcept {
        return state_ == State::kFormed ? int{ULC_OK} : why_not();
    }
    [[nodiscard]] bool is_formed() const noexcept { return state_ == State::kFormed; }
    [[nodiscard]] bool is_idle() const noexcept { return state_ == State::kIdle; }
    [[nodiscard]] bool is_leaving() const noexcept { return state_ == State::kLeaving; }
    /// True if the next step of leaving is submit_leave().
    [[nodiscard]] bool is_leave_due() const noexcept { return is_leaving() && !leave_submitted_; }
    [[nodiscard]] std::uint16_t rank() const noexcept { return rank_; }
    [[nodiscard]] std::uint16_t size() const noexcept { return size_; }
    [[nodiscard]] std::uint32_t world() const noexcept { return world_; }
    [[nodiscard]] Medium medium() const noexcept { return medium_; }
    /// Returns the error of the last job, if it failed.
    [[nodiscard]] int job_error() const noexcept { return job_error_; }
    /// Returns the engine's text when the job failed; may be empty.
    [[nodiscard]] const std::string& job_text() const noexcept { return job_text_; }
    /// Returns, after leaving, ULC_OK if everything was acknowledged, else why not.
    [[nodiscard]] int left_error() const noexcept { return left_error_; }

    // --- peers
    [[nodiscard]] int peer_state(std::uint16_t rank) const noexcept;
    /// Returns 0, PEER_LEFT or PEER_DIED; INVALID: no peer is linked there. rank < size().
    [[nodiscard]] int peer_error(std::uint16_t rank) const noexcept { return peer_errors_[rank]; }
    /// True if it is a rank, and a peer is or was linked there.
    [[nodiscard]] bool knows(std::uint16_t rank) const noexcept {
        return rank < size_ && peer_errors_[rank] != ULC_ERR_INVALID;
    }
    /// Sets what peer_error() returns.
    void set_peer_error(std::uint16_t rank, int error) noexcept {
        peer_errors_[rank] = static_cast<std::uint8_t>(error);
    }
    void check_invariants() const;

private:
    friend struct Breaker;
    enum class State : std::uint8_t { kIdle, kForming, kFormed, kFailed, kLeaving, kClosed };

    [[nodiscard]] int may_begin() const noexcept;
    [[nodiscard]] int why_not() const noexcept;
    [[nodiscard]] int seal(const unsigned char* nonce) const;
    [[nodiscard]] int open_links(std::uint16_t links, abi::OpenLinksRequest& request);
    [[nodiscard]] int begin_forming(abi::SubmitKind kind, const void* request, std::size_t octets);
    void free_request() noexcept;
    void form(std::uint16_t rank, std::uint32_t size, int peer_error);

    const abi::Region& region_;
    const Hooks& hooks_;
    Submitter& submitter_;
    TxArena& arena_;
    Recall recall_;
    State state_ = State::kIdle;
    bool leave_submitted_ = false;
    Medium medium_ = Medium::kSwitch;
    std::uint16_t medium_wanted_;
    std::uint16_t rank_ = ULC_RANK_ANY;
    std::uint16_t size_ = 0;
    std::uint32_t world_ = 0;
    int ended_ = 0;
    int job_error_ = ULC_ERR_NOT_FORMED;
    int left_error_ = ULC_OK;
    std::uint32_t request_block_ = TxArena::kNone;  ///< block of the request to join or open
    std::vector<std::uint8_t> peer_errors_;         ///< by rank: as peer_error()
    std::string job_text_;
};

}  // namespace ulc::client
