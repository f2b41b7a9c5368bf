// SPDX-License-Identifier: BSD-3-Clause
// Guest sessions: jobs of one sender and all members of another group, so that its broadcast to the
// group goes as one frame.
//
//   guest                                                  member i of n
//   has a link to each member (groups.h)
//   Invitation, as a message by each link ───────────────▶ opens an endpoint
//   joins the job as rank 0 of n + 1 ◀────── forms ──────▶ joins it as rank i + 1
//   Switch, the last message by each link ───────────────▶ takes messages of the session
//   from now on sends to the group by the session
//   sends by the links on ◀───────────── Refusal ───────── has no place, or no endpoint
//
// Only the guest sends. Its unicasts to members go by the session too, and a member leaves the
// session's messages until it has the Switch. So it takes all of the guest's messages in the order
// in which they were sent. The profile `detect` may lose the Switch, and does not wait for it. The
// end of the guest ends the session. One process has at most kMost sessions of each kind.
//
// Used by Process, by the thread that has the endpoints. The tables only; guests.cc has the steps.
#pragma once

#include <ulc.h>

#include <array>
#include <bitset>
#include <cstdint>
#include <string>

#include "base/units.h"
#include "ports/way.h"

namespace ulc::ports {

class Sessions {
public:
    static constexpr unsigned kMost = 4;
    static constexpr PortNumber kInvitationPort = 252;
    // The number of their tags is that of the session.
    static constexpr PortNumber kRefusalPort = 251;
    static constexpr PortNumber kSwitchPort = 250;

    /// Goes by a link, whose ends share a secret, so the job is theirs alone.
    struct Invitation {
        std::array<unsigned char, 8> name{};
        std::array<unsigned char, 16> nonce{};

        /// False: there are no random numbers.
        [[nodiscard]] bool choose() noexcept;
        [[nodiscard]] std::string job() const;
        /// The number of the session in a tag.
        [[nodiscard]] std::uint64_t number() const noexcept;
    };

    /// An invitation that has come, or comes.
    struct Invited {
        bool is_open = false;
        std::uint16_t from = 0;  ///< peer
        Invitation words;
        ulc_request request;
    };
    /// A sender of another group.
    struct Guest {
        ulc_endpoint* ep = nullptr;  ///< nullptr: none
        std::uint16_t from = 0;      ///< peer by the link
        std::uint64_t number = 0;
        Nanos until = 0;          ///< when it must have formed
        bool is_decided = false;  ///< has formed, or will not
        bool has_switched = false;
        Expected expected;
    };
    /// A group to which this process is a guest.
    struct Host {
        bool is_open = false;     ///< false: vacant, or being made
        bool is_retired = false;  ///< has members that are gone; ends with the sends under way
        std::uint8_t par_pid = 0;
        unsigned instances = 0;
        Way way;
        [[nodiscard]] std::uint16_t rank_of(unsigned node) const noexcept {
            return static_cast<std::uint16_t>(way.first_rank + node);
        }
        [[nodiscard]] bool has_all() const noexcept;
    };

    [[nodiscard]] std::array<Host, kMost>& hosts() noexcept { return hosts_; }
    [[nodiscard]] std::array<Invited, kMost>& invited() noexcept { return invited_; }
    [[nodiscard]] bool has_invited() const noexcept;
    [[nodiscard]] std::array<Guest, kMost>& guests() noexcept { return guests_; }
    /// nullptr: the endpoint is no guest's.
    [[nodiscard]] Guest* guest_of(const ulc_endpoint* ep) noexcept;
    void on_switch(std::uint64_t number) noexcept;

    /// A place for one more session; nullptr: none is left.
    [[nodiscard]] Host* free_host() noexcept;
    /// The session with that group; nullptr: there is none.
    [[nodiscard]] Host* host(std::uint8_t par_pid) noexcept;
    /// The way to a member, or all (BROADCAST), of a group; nullptr: by links.
    [[nodiscard]] Way* way_to(std::uint8_t par_pid, std::uint8_t node) noexcept;
    /// Polls their endpoints; returns the number of events.
    int poll_hosts() noexcept;

    /// Notes the session that is being made; 0: none.
    void set_making(std::uint64_t number) noexcept {
        making_ = number;
        is_refused_ = false;
    }
    void on_refusal(std::uint64_t number) noexcept {
        if (making_ != 0 && number == making_) is_refused_ = true;
    }
    [[nodiscard]] bool is_making() const noexcept { return making_ != 0; }
    [[nodiscard]] bool is_refused() const noexcept { return is_refused_; }

    std::bitset<GAMMA_PORTS>
        by_links;  ///< groups, by parallel PID, that no session could be made with

    /// Forgets all; their endpoints are closed.
    void clear() noexcept;

private:
    std::array<Invited, kMost> invited_;
    std::array<Guest, kMost> guests_;
    std::array<Host, kMost> hosts_;
    std::uint64_t making_ = 0;
    bool is_refused_ = false;
};

}  // namespace ulc::ports
