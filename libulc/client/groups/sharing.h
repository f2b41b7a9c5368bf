// SPDX-License-Identifier: BSD-3-Clause
// The agreement of the members of a new group on its multicast address (URTP §3.2.1,
// docs/PROTOCOL.md §6.5). Until they have agreed, and if they cannot, messages to the group go to
// all nodes by broadcast. So nothing waits for the agreement, and a lost message of it costs only
// frames.
//
//   coordinator    the nodes' offers came with the reports (groups.h); AddressChoice; the address
//                  goes out with the verdict
//   own address    all listen already: kUseAddress
//   broadcast      kUseAddress
//   shared         kListenGroup ─▶ engine ─▶ kGroupListens ─▶ Word{listening} ─▶ coordinator
//   coordinator    when all listen: Word{use} ─▶ all: kUseAddress
//
// Words are unicast messages of libulc with separate tags, 8 bytes, big-endian. A member that dies,
// or whose node has no space any more, leaves the group at broadcast.
#pragma once

#include <cstdint>
#include <list>
#include <span>
#include <vector>

#include "base/address_plan.h"
#include "base/endian.h"
#include "client/p2p/outbox.h"
#include "client/p2p/submitter.h"

namespace ulc::client {

class Sharing {
public:
    Sharing(Submitter& submitter, Outbox& outbox) noexcept
        : submitter_(submitter), outbox_(outbox) {}

    /// Called when the verdict names `address`. `own`: the group's own address, if this node
    /// listens to it, else broadcast.
    void agreed(std::uint32_t group, AddressId address, AddressId own, std::uint16_t coordinator);
    /// The same at the coordinator, before the verdict is sent. `ranks`: all members, `self` among
    /// them.
    void agreed_here(std::uint32_t group, AddressId address, AddressId own,
                     std::span<const std::uint16_t> ranks, std::uint16_t self);
    /// Handles kGroupListens.
    void on_listens(std::uint32_t group, AddressId address, int status);
    /// Handles a message with one of the tags. Returns false if it is malformed.
    [[nodiscard]] bool on_word(std::uint16_t source, std::uint64_t tag,
                               std::span<const unsigned char> octets);
    void forget(std::uint32_t group) noexcept;
    void peer_gone(std::uint16_t rank) noexcept;
    /// Sends messages that found no space.
    void progress() {
        if (!errands_.empty()) [[unlikely]]
            run_errands();
    }
    [[nodiscard]] bool waits() const noexcept { return !errands_.empty(); }

private:
    void run_errands();
    struct Word {
        Be32 group;
        Be32 address;
    };
    static_assert(sizeof(Word) == 8);
    struct Group {
        std::uint32_t handle = 0;
        AddressId address = kBroadcastAddress;
        std::uint16_t coordinator = 0;
        std::vector<std::uint16_t> waiting;  ///< coordinator: members that do not listen yet
        std::vector<std::uint16_t> others;   ///< coordinator: members to notify
    };
    enum class What : std::uint8_t { kListen, kUse, kSayListening, kSayUse };
    /// A message that is due, to the engine or to a rank.
    struct Errand {
        What what;
        std::uint16_t rank;
        std::uint32_t group;
        AddressId address;
    };
    [[nodiscard]] bool run(const Errand& errand);
    [[nodiscard]] bool decided(std::uint32_t group, AddressId address, AddressId own);
    void on_listening(Group& group, std::uint16_t rank);
    [[nodiscard]] Group* find(std::uint32_t handle) noexcept;

    Submitter& submitter_;
    Outbox& outbox_;
    std::uint16_t self_ = 0;
    std::list<Group> groups_;  ///< groups that will share, and do not yet
    std::vector<Errand> errands_;
};

}  // namespace ulc::client
