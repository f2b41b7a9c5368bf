// SPDX-License-Identifier: BSD-3-Clause
// Members of other groups: an endpoint that is open for links under the name (parallel PID,
// instance), next to that of the group's job. The processes of all groups that share the secret of
// ULC_GROUPS find each other by these names.
//
//   gamma_setport(… PID …) ──▶ start() ─▶ ulc_link by name ─▶ member(): a peer of the endpoint
//                                         the peer says HELLO: instances of its group
//
// The peers of the endpoint, kGuestsMax, and its receive memory are what guests can use up; those
// of the job are not theirs. Used by Process, by the thread that has the endpoints.
#pragma once

#include <ulc.h>

#include <array>
#include <bitset>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "ports/port_table.h"

namespace ulc::ports {

class Groups {
public:
    static constexpr std::uint16_t kGuestsMax = 512;
    static constexpr std::uint16_t kNone = ULC_RANK_ANY;
    /// The port of greetings; the tag's number is the size of the sender's group.
    static constexpr PortNumber kHelloPort = 253;

    /// A member of another group, as this process uses it.
    struct Member {
        std::uint8_t par_pid = 0;
        std::uint8_t node = 0;
        std::uint16_t peer = kNone;
        bool calls = false;               ///< `call` is under way
        std::bitset<GAMMA_PORTS> unsure;  ///< ports of messages that may not have arrived
        ulc_request call;
        int error = ULC_OK;  ///< error of the call
    };

    /// Opens the endpoint if ULC_GROUPS says so. False: it cannot; a sentence was printed.
    [[nodiscard]] bool open(int par_pid, int node, int nodes);
    /// Lets what was sent arrive, and closes the endpoint.
    void close();
    /// nullptr: messages to other groups are not possible.
    [[nodiscard]] ulc_endpoint* endpoint() const noexcept { return ep_; }

    /// Returns the member, and starts the link to it if there is none.
    [[nodiscard]] Member& start(std::uint8_t par_pid, std::uint8_t node);
    /// False: the link to the member is still being made.
    [[nodiscard]] bool is_settled(Member& member);
    /// nullptr: it was never asked for, or there is no link.
    [[nodiscard]] Member* member(std::uint8_t par_pid, std::uint8_t node) noexcept;
    [[nodiscard]] bool is_alive(const Member& member) const noexcept;
    /// Instances of the member's group, which it has said; 0: not yet.
    [[nodiscard]] unsigned group_size(const Member& member) const noexcept;

    /// Greets peers that have linked to this process.
    void greet();
    /// Lets go of such peers that are gone, all of whose messages were taken.
    void forget_guests();
    /// True if the message was the library's own.
    [[nodiscard]] bool take_hello(std::uint64_t tag, std::uint16_t peer) noexcept;
    /// True if messages of that peer before this one are missing.
    [[nodiscard]] bool shows_gap(std::uint64_t tag, std::uint16_t peer) noexcept;
    /// Returns the tag of the next message to a peer; sent(): it was taken.
    [[nodiscard]] std::uint64_t tag_for(std::uint16_t peer, PortNumber port) const noexcept;
    void sent(std::uint16_t peer) noexcept { ++peers_[peer].next_out; }
    /// Adds the ports of messages to members that have left or died since the last call.
    void take_failures(std::bitset<GAMMA_PORTS>& out);

private:
    struct Peer {
        std::uint64_t next_in = 0;
        std::uint64_t next_out = 0;
        unsigned instances = 0;  ///< instances of its group
    };

    void say_hello(std::uint16_t peer);
    void let_go(Member& member);

    ulc_endpoint* ep_ = nullptr;
    unsigned nodes_ = 0;
    std::array<unsigned char, 16> secret_{};
    std::vector<Peer> peers_;
    std::map<std::uint16_t, std::unique_ptr<Member>> members_;  ///< by PID · 256 + node
    std::vector<std::uint16_t> ungreeted_;
    std::vector<std::uint16_t> guests_;  ///< peers that have linked by themselves
};

}  // namespace ulc::ports
