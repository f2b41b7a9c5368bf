// SPDX-License-Identifier: BSD-3-Clause
// Links of one endpoint to endpoints of no common job (docs/PROTOCOL.md §13), as the client keeps
// them: the peers, and the requests that make and end links. Peers have the places of ranks. Used
// by Endpoint.
//
//   vacant ──kLinked──▶ there ──unlink()──▶ ending ──kUnlinked──▶ vacant
//
// A peer that is gone keeps its place until unlink(), so that its number means no one else.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "abi/records.h"
#include "client/p2p/request.h"
#include "client/p2p/submitter.h"
#include "client/ulc.h"

namespace ulc::client {

class LinkTable {
public:
    LinkTable(Submitter& submitter, std::uint16_t links, const unsigned char* address);

    [[nodiscard]] const ulc_link_address& address() const noexcept { return address_; }
    /// Starts what ulc_link() and ulc_unlink() say. Errors: AGAIN, INVALID, NO_MEMORY.
    [[nodiscard]] int link(const ulc_link_address& peer, Nanos timeout, ulc_request* request);
    [[nodiscard]] int unlink(std::uint16_t peer, ulc_request* request);
    /// A peer that has linked to this endpoint, and was not given yet. False: none.
    [[nodiscard]] bool next_peer(std::uint16_t& peer) noexcept;

    /// kLinked, kLinkDone and kUnlinked. False: no correct engine writes it.
    [[nodiscard]] bool on_linked(std::uint16_t peer, bool incoming);
    [[nodiscard]] bool on_link_done(std::uint32_t cookie, std::uint16_t peer, int status);
    [[nodiscard]] bool on_unlinked(std::uint16_t peer);
    void fail_all(int error) noexcept;

private:
    enum class Place : std::uint8_t { kVacant, kThere, kEnding };

    Submitter& submitter_;
    ulc_link_address address_{};
    std::vector<Place> places_;     ///< by peer
    std::vector<Request*> calls_;   ///< by cookie; nullptr: free
    std::vector<Request*> ending_;  ///< by peer; nullptr: no request waits for it
    std::deque<std::uint16_t> incoming_;
};

}  // namespace ulc::client
