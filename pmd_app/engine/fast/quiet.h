// SPDX-License-Identifier: BSD-3-Clause
// Quiet: nothing is due, and rounds only look at the ports and at the submissions of some clients
// (round.cc begins it).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "abi/slot_ring.h"
#include "base/check.h"
#include "base/units.h"
#include "engine/clients/endpoint.h"

namespace ulc::engine {

/// The place of a client's next submission.
struct Look {
    abi::NextSlot next;
    Endpoint* endpoint;
};

class Quiet {
public:
    // --- its time
    [[nodiscard]] bool is_on() const noexcept { return until_ != 0; }
    [[nodiscard]] bool holds(Nanos now) const noexcept { return now < until_; }
    /// Begins it, or defers its end, until that time. 0: something is due.
    void set_until(Nanos until) noexcept { until_ = until; }
    void limit(Nanos until) noexcept { until_ = std::min(until_, until); }
    /// The next round is general.
    void leave() noexcept { until_ = 0; }

    // --- whether rounds move something
    /// True if the last round did, or something did since: the next one is due at once.
    [[nodiscard]] bool has_moved() const noexcept { return moved_; }
    void note(bool moved) noexcept {
        moved_ = moved;
        still_rounds_ = moved ? 0 : still_rounds_ + 1;
    }

    // --- where it looks
    /// Makes space for that many clients, so that no round allocates.
    void reserve(std::size_t clients) { looks_.reserve(clients); }
    void clear_looks() noexcept { looks_.clear(); }
    void add_look(Endpoint& endpoint) {
        endpoint.set_look(static_cast<std::uint32_t>(looks_.size()));
        looks_.push_back({endpoint.inlet().next(), &endpoint});
    }
    /// The next round looks at all clients. They take turns from `turn_after` rounds on in which
    /// nothing moved; UINT32_MAX: never.
    void begin_looks(std::uint32_t turn_after) noexcept {
        turn_after_ = turn_after;
        look_at_all();
    }
    void look_at_all() noexcept {
        from_ = looks_.data();
        to_ = end();
    }
    [[nodiscard]] bool takes_turns() const noexcept { return turn_after_ != UINT32_MAX; }
    [[nodiscard]] bool is_turn_over() const noexcept { return still_rounds_ >= turn_after_; }
    /// The next round looks at the next few clients. The first time after all, at the first.
    void look_at_next(std::uint32_t clients) noexcept {
        from_ = to_ == end() ? looks_.data() : to_;
        to_ = from_ + std::min<std::ptrdiff_t>(clients, end() - from_);
    }
    /// Returns those of the next round.
    [[nodiscard]] std::span<Look> looks() noexcept { return {from_, to_}; }
    [[nodiscard]] std::span<const Look> all_looks() const noexcept { return looks_; }
    /// Looks again at the records of an endpoint that wait in its ring.
    void look_again(Endpoint& endpoint) noexcept {
        if (!is_on()) return;  // the next quiet begins with all looks
        ULC_CHECK(endpoint.look() < looks_.size() && looks_[endpoint.look()].endpoint == &endpoint);
        looks_[endpoint.look()].next = endpoint.inlet().next();
    }

    // --- for its state
    [[nodiscard]] std::size_t from() const noexcept {
        return static_cast<std::size_t>(from_ - looks_.data());
    }
    [[nodiscard]] std::size_t to() const noexcept {
        return static_cast<std::size_t>(to_ - looks_.data());
    }
    void set_range(std::size_t from, std::size_t to) noexcept {
        from_ = looks_.data() + from;
        to_ = looks_.data() + to;
    }
    void fields(state::Archive& archive);

private:
    [[nodiscard]] Look* end() noexcept { return looks_.data() + looks_.size(); }

    Nanos until_ = 0;
    bool moved_ = true;
    std::uint32_t still_rounds_ = 0;  ///< consecutive ones
    std::uint32_t turn_after_ = UINT32_MAX;
    std::vector<Look> looks_;  ///< one for each client that may submit; valid in quiet
    Look* from_ = nullptr;     ///< the next round looks from here …
    Look* to_ = nullptr;       ///< … to before this one
};

}  // namespace ulc::engine
