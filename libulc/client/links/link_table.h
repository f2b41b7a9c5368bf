// SPDX-License-Identifier: BSD-3-Clause
// Links of one endpoint to endpoints of no common job (docs/PROTOCOL.md §13), as the client keeps
// them: the peers, and the requests that make and end links. Peers have the places of ranks. Used
// by Endpoint. Empty until the endpoint is open for links.
//
//   vacant ──kLinked──▶ there ──unlink()──▶ ending ──kUnlinked──▶ vacant
//
// A peer that is gone keeps its place until unlink(), so that its number means no one else.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "abi/records.h"
#include "client/jobs/membership.h"
#include "client/messages/messages.h"
#include "client/p2p/request.h"
#include "client/p2p/submitter.h"
#include "client/ulc.h"

namespace ulc::client {

class LinkTable {
public:
    /// The references outlive this.
    LinkTable(Submitter& submitter, Membership& membership, Messages& messages) noexcept
        : submitter_(submitter), membership_(membership), messages_(messages) {}
    /// Notes that the endpoint is open. May throw std::bad_alloc.
    void open(const unsigned char* address);

    // --- as the functions of ulc.h
    [[nodiscard]] int address(ulc_link_address& out) const noexcept;
    [[nodiscard]] int link(const ulc_link_address& peer, Nanos timeout, ulc_request* request);
    [[nodiscard]] int unlink(std::uint16_t peer, ulc_request* request);
    [[nodiscard]] int next_peer(std::uint16_t& peer) noexcept;

    /// Handles kLinked, kLinkDone and kUnlinked. Returns false if no correct engine writes it.
    [[nodiscard]] bool on_record(const abi::CompletionRecord& record);
    void fail_all(int error) noexcept;
    void check_invariants() const;

private:
    friend struct Breaker;
    enum class Place : std::uint8_t { kVacant, kThere, kEnding };

    [[nodiscard]] int may_link() const noexcept;
    [[nodiscard]] bool on_linked(std::uint16_t peer, bool incoming);
    [[nodiscard]] bool on_link_done(std::uint32_t cookie, std::uint16_t peer, int status);
    [[nodiscard]] bool on_unlinked(std::uint16_t peer);

    Submitter& submitter_;
    Membership& membership_;
    Messages& messages_;
    ulc_link_address address_{};
    std::vector<Place> places_;     ///< by peer
    std::vector<Request*> calls_;   ///< by cookie; nullptr: free
    std::vector<Request*> ending_;  ///< by peer; nullptr: no request waits for it
    std::deque<std::uint16_t> incoming_;
};

}  // namespace ulc::client
