// SPDX-License-Identifier: BSD-3-Clause
// The configuration of links, the events of links, and one end of a link. Used by links.h and by
// its parts in links/.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "base/units.h"
#include "seal/tokens.h"
#include "wire/ids.h"
#include "wire/link.h"

namespace ulc::state {
class Archive;
}  // namespace ulc::state

namespace ulc::jobs {

inline constexpr std::size_t kLinkAnswersMax = 64;
inline constexpr std::size_t kCallsMax = 64;
inline constexpr std::size_t kLookupsMax = 64;

/// Names an end; stays valid when its endpoint is forgotten. slot kNoRank: no end.
struct LinkRef {
    Handle endpoint = 0;
    Rank slot = kNoRank;
    friend bool operator==(const LinkRef&, const LinkRef&) = default;
    void fields(state::Archive& archive);
};

struct LinksConfig {
    Mac mac;
    std::uint32_t incarnation = 1;
    wire::NodeAttributes attributes;  ///< set_attributes() changes them
    seal::Seed seed;
    Nanos request_wait_min = kMillisecond;  ///< a REQUEST is repeated after this, doubling
    Nanos request_wait_max = 50 * kMillisecond;
    Nanos accept_wait = 5 * kMillisecond;  ///< until an ACCEPT is repeated unasked
    std::uint8_t accept_repeats = 2;       ///< so that an answer is at most thrice its question
    Nanos unconfirmed_life = 4 * kSecond;
    Nanos unlink_wait_min = 5 * kMillisecond;
    Nanos unlink_wait_max = 100 * kMillisecond;
    std::uint8_t unlinks_max = 20;
    std::uint8_t unlinks_of_closed = 4;  ///< the same, if the endpoint has ended
    std::uint32_t answers_per_second = 1000;
    std::uint32_t lookups_per_second = 1000;  ///< WHERE, of all endpoints
};

enum class LinkEventKind : std::uint8_t {
    kOpened,     ///< the slot has a peer: its streams may begin
    kConfirmed,  ///< the peer is there; once, after kOpened
    kFailed,     ///< a call failed: error. The slot was never opened, and is vacant
    kDropped,    ///< an opened slot was not confirmed; release() it
    kPeerLeft,   ///< after kConfirmed; release() the slot
    kPeerDied,
    kUnlinked,  ///< the link that unlink() ended is over; release() the slot
    /// find() with that cookie became a call of that slot; or it failed: error, no slot
    kCalled,
};

struct LinkEvent {
    LinkEventKind kind{};
    Handle endpoint = 0;
    Rank slot = 0;
    Err error = Err::kOk;
    std::uint32_t cookie = 0;  ///< kCalled
    void fields(state::Archive& archive);
};

/// One end of a link, as its engine keeps it.
struct LinkEnd {
    enum class State : std::uint8_t {
        kVacant,
        kQueued,
        kCalling,
        kAnswered,
        kUp,
        kLeaving,
        kGone,
        kFree
    };
    State state = State::kVacant;
    bool due : 1 = false;  ///< in the queue of those that speak
    bool watched : 1 = false;
    bool waits : 1 = false;  ///< in the list of those with a time
    bool says_request : 1 = false;
    bool says_accept : 1 = false;
    bool says_confirm : 1 = false;
    bool says_unlink : 1 = false;
    wire::LeaveReason reason{};
    std::uint8_t left = 0;              ///< repetitions
    Rank self = kNoRank;                ///< the peer's slot for this endpoint
    std::uint16_t mtu = wire::kMtuMin;  ///< MTU of the peer's node
    Mac mac;
    Handle peer = 0;
    std::uint32_t incarnation = 0;
    Seq in;   ///< first number of what the peer sends
    Seq out;  ///< first number of what is sent to it
    wire::LinkId ours = 0;
    wire::LinkId theirs = 0;
    wire::LinkKey key;  ///< the peer's, of one that was called
    Nanos at = kNever;
    Nanos wait = 0;
    Nanos deadline = kNever;

    [[nodiscard]] bool speaks() const noexcept {
        return says_request || says_accept || says_confirm || says_unlink;
    }
    void say_nothing() noexcept { says_request = says_accept = says_confirm = says_unlink = false; }
    /// A frame about this link may come, and the link counts as that of its peer.
    [[nodiscard]] bool alive() const noexcept {
        return state != State::kVacant && state != State::kGone && state != State::kFree;
    }
    void fields(state::Archive& archive);
};

}  // namespace ulc::jobs
