// SPDX-License-Identifier: BSD-3-Clause
// The control messages between the libraries of two ranks: Asks and Holds of announced messages
// (p2p/rendezvous.h), offers of rings (near/near.h), and those of groups. Used by Messages.
// Announced messages of a rank to itself are asked for here as well.
//
// A control message proves nothing: a malformed one is dropped and counted.
#pragma once

#include <cstddef>
#include <cstdint>

#include "client/groups/groups.h"
#include "client/jobs/membership.h"
#include "client/near/near.h"
#include "client/p2p/inbox.h"
#include "client/p2p/outbox.h"

namespace ulc::client {

class ControlMessages {
public:
    /// The references outlive this.
    ControlMessages(const Membership& membership, Outbox& outbox, Inbox& inbox,
                    Groups& groups) noexcept
        : membership_(membership), outbox_(outbox), inbox_(inbox), groups_(groups) {}

    /// Handles a message with a tag of libulc. near: nullptr, or takes offers.
    [[nodiscard]] Inbox::Taken on_message(const abi::CompletionRecord& record, Near* near);
    /// Sends a control message. Returns false if there is no space now.
    [[nodiscard]] bool send(std::uint16_t to, std::uint64_t tag, const void* content,
                            std::size_t octets) noexcept;
    /// Sends the Asks and Holds that are due.
    void answer() noexcept;
    /// Announces a message of this rank to itself.
    [[nodiscard]] int announce_to_self(const SendArgs& args, ulc_request* request) noexcept;
    /// Returns the number of malformed or late control messages.
    [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_; }

private:
    [[nodiscard]] bool handle(const abi::CompletionRecord& record,
                              std::span<const unsigned char> content, Near* near);
    [[nodiscard]] bool answer_own(Arrival& arrival) noexcept;

    const Membership& membership_;
    Outbox& outbox_;
    Inbox& inbox_;
    Groups& groups_;
    std::uint64_t dropped_ = 0;
};

}  // namespace ulc::client
