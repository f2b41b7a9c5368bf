// SPDX-License-Identifier: BSD-3-Clause
// This file tells a client which process a peer on this node is, so that the two may share memory.
// The answer rests on what the engine knows of its clients. A roster and the frames of a link are
// the word of another node: they only say where to look.
#include <cstring>

#include "base/check.h"
#include "engine/core.h"

namespace ulc::engine {
namespace {

/// True if both ends of a link are here, and each is that of the other.
bool are_linked(const Links& links, const Endpoint& endpoint, Rank slot, const Endpoint& other) {
    const LinkEnd* end = links.at(endpoint.handle(), slot);
    if (end == nullptr || end->peer != other.handle()) return false;
    const LinkEnd* back = links.at(other.handle(), end->self);
    return back != nullptr && back->peer == endpoint.handle() && back->self == slot;
}

/// Returns the endpoint of this engine that is the peer; nullptr: the peer is elsewhere, or gone.
const Endpoint* peer_here(const Core& core, const Endpoint& endpoint, Rank rank) {
    const urtp::Peer& peer = endpoint.member()->peer(rank);
    if (!endpoint.membership().is_here(rank) || peer.mac != endpoint.net().port().info.mac)
        return nullptr;
    const Endpoint* other = core.find(peer.handle);
    if (other == nullptr || !other->is_on(endpoint.net()) || other->member() == nullptr ||
        !other->life().has_memory() || other->life().is_detached())
        return nullptr;
    if (endpoint.links() != nullptr)
        return are_linked(endpoint.net().jobs().links(), endpoint, rank, *other) ? other : nullptr;
    return other->membership().job() == endpoint.membership().job() &&
                   other->member()->rank() == rank
               ? other
               : nullptr;
}

abi::ProcessRow row_of(const Endpoint& endpoint) noexcept {
    return {endpoint.claimant().pid, endpoint.user().uid, endpoint.claimant().start_ticks};
}

}  // namespace

bool near_record(Core& core, Endpoint& endpoint, const abi::SubmissionRecord& record) {
    const bool has_peer = endpoint.member() != nullptr && record.stream < endpoint.member()->size();
    if (!has_peer) bad_record(core, endpoint);
    const auto rank = static_cast<Rank>(record.stream);
    const Endpoint* other = has_peer ? peer_here(core, endpoint, rank) : nullptr;
    abi::CompletionRecord* out = endpoint.outlet()->claim_report(abi::CompletionKind::kNear);
    ULC_CHECK(out != nullptr);  // no record is taken while the ring is full
    out->source = rank;
    if (other == nullptr) {
        out->status = static_cast<std::int16_t>(Err::kUnsupported);
    } else {
        const abi::NearRows rows{row_of(endpoint), row_of(*other)};
        out->flags = abi::kCompleteInline;
        out->inline_length = sizeof rows;
        std::memcpy(out->body.inline_octets, &rows, sizeof rows);
    }
    endpoint.outlet()->publish_report();
    return true;
}

}  // namespace ulc::engine
