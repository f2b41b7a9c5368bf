// SPDX-License-Identifier: BSD-3-Clause
// The free nodes of the store: how many are promised to a stream (KeptRoom), and the sources that
// wait for some, in turn.
#pragma once

#include "base/tables/list.h"
#include "urtp/receiver/rx_store.h"
#include "urtp/session.h"

namespace ulc::urtp {

class Sessions;

class RxRoom {
public:
    explicit RxRoom(const RxStore& store) noexcept : store_(store) {}  ///< it outlives this

    /// Returns how many free nodes have frames for a source.
    [[nodiscard]] std::uint32_t of(const Session& source) const noexcept {
        return store_.room(source.local);
    }
    [[nodiscard]] bool has(const Session& source, std::uint32_t nodes) const noexcept {
        return store_.has_room(source.local, nodes);
    }

    // --- nodes that are promised
    /// Returns the free nodes that are not.
    [[nodiscard]] std::uint32_t unkept() const noexcept {
        return store_.free_count() > kept_ ? store_.free_count() - kept_ : 0;
    }
    [[nodiscard]] std::uint32_t kept() const noexcept { return kept_; }
    void keep(std::uint32_t nodes) noexcept { kept_ += nodes; }  ///< free ones, for somebody
    void unkeep(std::uint32_t nodes) noexcept { kept_ -= nodes; }
    /// The stream ends: nothing is kept for it any more.
    void end_keeping(RxStream& rx) noexcept {
        kept_ -= rx.room.granted + (rx.room.slots - rx.room.slots_used);
        rx.room = {};
    }
    /// A node of a stream's own share is free again.
    void slot_returned(Session& session, StreamId stream) noexcept;

    // --- sources that wait for nodes
    void await(Session& source) noexcept {
        source.starved = true;
        starved_.add(source);
    }
    [[nodiscard]] bool is_awaited() const noexcept { return !starved_.empty(); }
    [[nodiscard]] bool is_awaited_by(const Session& source) const noexcept {
        return starved_.holds(source);
    }
    [[nodiscard]] Session& first_starved() noexcept { return *starved_.front(); }
    void starve_on() noexcept { starved_.rotate(); }  ///< the others' turn
    void end_starving(Session& source) noexcept {
        source.starved = false;
        starved_.remove(source);
    }
    void remove(Session& source) noexcept { starved_.remove(source); }  ///< it is gone

    void fields(state::Archive& archive);                                 ///< urtp/state/
    void starved_fields(state::Archive& archive, const Sessions& named);  ///< after the sessions

private:
    const RxStore& store_;
    std::uint32_t kept_ = 0;
    List<Session, &Session::starved_link> starved_;
};

}  // namespace ulc::urtp
