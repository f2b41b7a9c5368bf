// SPDX-License-Identifier: BSD-3-Clause
// The rules of a group may decide more than those of its streams do. The functions here are URTP's
// rules, which decide nothing: a multicast stream follows the rules of every stream. PCODE's are in
// profiles/pcode/. One object for each group.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "port/segment.h"
#include "wire/ids.h"

namespace ulc::wire {
struct FrameView;  // wire/parse.h
}

namespace ulc::state {
class Archive;  // base/state/archive.h
}

namespace ulc::urtp {

struct RxStream;
struct Timer;
struct Session;

class GroupRules {
public:
    GroupRules() = default;
    virtual ~GroupRules() = default;
    GroupRules(const GroupRules&) = delete;
    GroupRules& operator=(const GroupRules&) = delete;

    // --- sending
    /// Window and credit allow the next packet: may it be sent?
    [[nodiscard]] virtual bool may_send(Nanos) noexcept { return true; }
    /// Returns the global counter of the next packet (frame type COUNTED).
    [[nodiscard]] virtual std::uint32_t next_count() noexcept { return 0; }
    /// The tail is without news. Returns the question for all members; nullptr: no segment.
    [[nodiscard]] virtual Segment* ask_for_news() noexcept { return nullptr; }

    // --- receiving, of streams whose packets carry a global counter (RxStream::counted)
    /// A packet came that is not the next of its stream. False: it is dropped.
    [[nodiscard]] virtual bool may_hold(const RxStream&) const noexcept { return true; }
    /// A packet is in order, and carried `count`.
    virtual void in_order(RxStream&, std::uint32_t, Nanos) noexcept {}
    /// An acknowledgement is due.
    virtual void acknowledge() noexcept {}
    /// A request is due. Returns the frame; nullptr: no segment.
    [[nodiscard]] virtual Segment* request(RxStream&, Nanos) noexcept { return nullptr; }

    // --- the group itself
    /// Returns whether the group has anything to say that no stream of it says.
    [[nodiscard]] virtual bool has_word() noexcept { return false; }
    /// Returns the frame, after has_word(); nullptr: no segment.
    [[nodiscard]] virtual Segment* speak() noexcept { return nullptr; }
    virtual void on_timer(Nanos) noexcept {}
    /// STATUS and NACK frames of a member. False: these rules do not know them.
    [[nodiscard]] virtual bool on_status(const wire::FrameView&, Session&, Nanos) { return false; }
    [[nodiscard]] virtual bool on_nack(const wire::FrameView&, Session&, Nanos) noexcept {
        return false;
    }
    /// The member with this index left or died.
    virtual void remove(std::uint16_t) noexcept {}

    // --- an upgrade (urtp/state/)
    virtual void fields(state::Archive&) {}
    [[nodiscard]] virtual Timer* timer() noexcept { return nullptr; }
};

}  // namespace ulc::urtp
