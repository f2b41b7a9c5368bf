// SPDX-License-Identifier: BSD-3-Clause
// The sends of one endpoint that are announced (rendezvous.h): which have to be, and those that
// wait for the receiver's Ask, by id. Used by Outbox.
//
// An id is an index into the table of announcements and, above kIndexBits, a generation, so that a
// late Ask for an earlier message is not one for the message that has its place.
#pragma once

#include <cstdint>
#include <vector>

#include "client/p2p/request.h"

namespace ulc::client {

struct SendArgs;

class Announcements {
public:
    /// Begins a job of that number of ranks. May throw std::bad_alloc.
    void begin_job(std::uint16_t ranks) {
        held_.assign(ranks, false);
        leaving_ = false;
    }

    // --- which sends are announced
    /// Announces unicasts of users of that number of bytes and more; UINT64_MAX: none.
    void set_from(std::uint64_t octets) noexcept {
        all_from_ = octets;
        set_threshold();
    }
    /// Returns the number of bytes below which no send is announced, except by its flags.
    [[nodiscard]] std::uint64_t from() const noexcept { return from_; }
    /// True if the send must be announced.
    [[nodiscard]] bool include(const SendArgs& args) const noexcept;
    /// Notes a Hold or Go of the peer. Returns true if its waiting sends are to be announced, too.
    [[nodiscard]] bool set_held(std::uint32_t peer, bool held) noexcept;
    [[nodiscard]] bool is_held(std::uint32_t peer) const noexcept { return held_[peer]; }
    /// Announces nothing more: no rest could follow.
    void leave() noexcept {
        leaving_ = true;
        set_from(UINT64_MAX);
    }

    // --- by id
    /// Sets the request's id. Returns false if there are too many, or out of memory.
    [[nodiscard]] bool open(Request& request) noexcept;
    void close(std::uint32_t id) noexcept;
    /// Returns the send with that announcement; nullptr: none.
    [[nodiscard]] Request* find(std::uint32_t id) const noexcept;
    /// Calls act(request) for each; act may close it.
    template <typename Act>
    void each(Act act) noexcept {
        for (std::size_t i = 0; i < table_.size(); ++i)
            if (table_[i].request != nullptr) act(*table_[i].request);
    }
    void clear() noexcept {
        table_.clear();
        free_ = kNone;
    }
    void check_invariants() const;

private:
    friend struct Breaker;
    static constexpr std::uint32_t kNone = UINT32_MAX;
    static constexpr unsigned kIndexBits = 20;
    static constexpr std::uint32_t kIndexMask = (1U << kIndexBits) - 1;
    static constexpr std::uint32_t kMax = 1U << kIndexBits;  ///< at once
    struct Entry {
        Request* request = nullptr;
        std::uint32_t next_free = 0;
        std::uint32_t generation = 0;
    };

    void set_threshold() noexcept;

    std::uint64_t from_ = UINT64_MAX;
    std::uint64_t all_from_ = UINT64_MAX;
    std::vector<bool> held_;  ///< by rank: it sent Hold
    std::uint32_t holding_ = 0;
    bool leaving_ = false;
    std::uint32_t free_ = kNone;
    std::vector<Entry> table_;
};

}  // namespace ulc::client
