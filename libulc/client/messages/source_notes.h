// SPDX-License-Identifier: BSD-3-Clause
// Notes of an endpoint to its engine about sources: for which it waits (URTP §3.1), and of which it
// takes other messages than before (arrivals/shares.h). Used by Messages and Waiter.
#pragma once

#include <cstdint>

#include "abi/region.h"
#include "client/jobs/membership.h"
#include "client/p2p/inbox.h"
#include "client/p2p/submitter.h"

namespace ulc::client {

class SourceNotes {
public:
    /// The references outlive this.
    SourceNotes(const abi::Region& region, Submitter& submitter, const Membership& membership,
                Inbox& inbox) noexcept
        : page_(region.control()), submitter_(submitter), membership_(membership), inbox_(inbox) {}

    /// Announces for which sources this endpoint waits. wait() and long empty polling do it
    /// themselves; a driver without wait(), as the simulator, calls it when the application has no
    /// work left.
    void announce_awaited() noexcept;
    /// Announces of which sender other messages are taken than before.
    void note_intake() noexcept;

private:
    abi::EndpointControl& page_;
    Submitter& submitter_;
    const Membership& membership_;
    Inbox& inbox_;
    std::uint32_t last_note_ = 0;  ///< the last abi::SourceNote
};

}  // namespace ulc::client
