// SPDX-License-Identifier: BSD-3-Clause
// The endpoints of this engine that have links, with a slot for each link. Used by LinkStates,
// which decides when a slot is taken and vacated, and by LinkFrames, which finds the link of a
// frame.
//
//   open() ─▶ take_slot() ─▶ detach(): over for the peer ─▶ vacate() ─▶ close() ─▶ forget_if_over()
//
// Invariants: an end is in the index while it is alive, once. Only such an end watches the node of
// its peer. The counts of an endpoint are those of its slots.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "jobs/links/link_index.h"
#include "jobs/links/link_types.h"
#include "jobs/liveness.h"
#include "seal/tokens.h"

namespace ulc::jobs {

/// An endpoint with links.
struct LinkEndpoint {
    Handle handle = 0;
    wire::LinkKey key;
    std::string profile;
    bool closed = false;
    bool published = false;
    std::size_t calls = 0;   ///< in kCalling
    std::size_t queued = 0;  ///< in kQueued
    std::size_t used = 0;    ///< not vacant
    std::size_t next = 0;    ///< the first slot that is looked at
    std::vector<LinkEnd> slots;
    void fields(state::Archive& archive);
};

class LinkTable {
public:
    /// config and liveness outlive this.
    LinkTable(const LinksConfig& config, Liveness& liveness);

    // --- endpoints
    void open(Handle endpoint, const wire::LinkKey& key, std::uint16_t slots,
              std::string_view profile);
    /// Marks an endpoint that has ended; its links may go on for some frames.
    void close(LinkEndpoint& endpoint) noexcept;
    /// Forgets an endpoint that is closed and has no link. Returns whether it did.
    bool forget_if_over(Handle endpoint);
    /// Returns nullptr if there is no such endpoint.
    [[nodiscard]] LinkEndpoint* find(Handle endpoint) const noexcept;
    /// True if the endpoint is there and open.
    [[nodiscard]] bool has(Handle endpoint) const noexcept;
    /// Returns the number of endpoints that are closed and not forgotten.
    [[nodiscard]] std::size_t closing() const noexcept { return closing_; }
    /// Calls visit(endpoint) for each endpoint.
    template <typename Visit>
    void for_each(const Visit& visit) const {
        for (const auto& [handle, endpoint] : endpoints_)
            visit(*endpoint);
    }

    // --- slots
    /// Returns nullptr if there is no such endpoint or slot.
    [[nodiscard]] LinkEnd* end_of(const LinkRef& ref) const noexcept;
    /// Takes the slot that was vacant for longest, as far as slots are taken in turn, and gives it
    /// a link id and first number. Its state is the caller's to set. Error: kLimit.
    [[nodiscard]] Result<Rank> take_slot(LinkEndpoint& endpoint, const Mac& mac, Handle peer,
                                         std::uint32_t incarnation);
    /// Gives an end another state.
    void set_state(LinkEndpoint& endpoint, Rank slot, LinkEnd::State state) noexcept;
    /// Watches the node of the end's peer. False: too many are watched.
    [[nodiscard]] bool watch(LinkEnd& end, Nanos now);
    /// Takes an end that is alive off its node, into the state kGone or kFree: it is over for the
    /// peer.
    void detach(LinkEndpoint& endpoint, Rank slot, LinkEnd::State state);
    /// Makes a slot vacant.
    void vacate(LinkEndpoint& endpoint, Rank slot);

    /// Finds the links of a node.
    [[nodiscard]] const LinkIndex& index() const noexcept { return index_; }
    /// Returns another link of the node at each call; slot kNoRank: it has none.
    [[nodiscard]] LinkRef in_turn(const Mac& node) noexcept { return index_.in_turn(node); }
    /// Returns an id that no other node can predict.
    [[nodiscard]] wire::LinkId new_id() noexcept { return tokens_.next(); }

    void check_invariants() const;
    void fields(state::Archive& archive);

private:
    void unwatch(LinkEnd& end);
    /// Returns whether each end that is alive is listed once, with its node and peer.
    [[nodiscard]] bool ends_are_listed() const;

    const LinksConfig& config_;
    Liveness& liveness_;
    seal::Tokens tokens_;
    std::unordered_map<Handle, std::unique_ptr<LinkEndpoint>> endpoints_;
    LinkIndex index_;  ///< ends that are alive
    std::size_t closing_ = 0;
};

}  // namespace ulc::jobs
