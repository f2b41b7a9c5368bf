// SPDX-License-Identifier: BSD-3-Clause
// This file takes the figures of endpoints that `ulc top` shows. Runs only when a reader asks:
// no round pays for it.
#include <algorithm>

#include "abi/client_notes.h"
#include "engine/core.h"
#include "engine/engine.h"

namespace ulc::engine {
namespace {

/// Counts the completions that the client has not taken. It says so a quarter of the ring late, so
/// up to a quarter counts as none. Its cursor may hold any value.
std::uint32_t find_unread(const Endpoint& endpoint) noexcept {
    if (!endpoint.reachable) return 0;
    const std::uint32_t consumed =
        endpoint.region.control().cq_consumed.load(std::memory_order_relaxed);
    const std::uint32_t unread = endpoint.completions.produced() - consumed;
    const std::uint32_t slots = endpoint.completions.slots();
    return unread <= slots / 4 ? 0 : std::min(unread, slots);
}

/// Finds the peer on another node with the largest smoothed round-trip time.
void find_slowest_peer(const urtp::Transport& member, abi::EndpointRow& out) noexcept {
    for (std::uint32_t rank = 0; rank < member.size(); ++rank) {
        const urtp::Session* session = member.find_session(rank);
        if (session == nullptr || session->local || !session->rtt.measured()) continue;
        const Nanos longest = std::min<Nanos>(session->rtt.smoothed(), UINT32_MAX);
        const auto rtt = static_cast<std::uint32_t>(std::max<Nanos>(longest, 1));
        if (rtt <= out.rtt_ns_max) continue;
        out.rtt_ns_max = rtt;
        out.rtt_rank = rank;
    }
}

abi::EndpointRow row_of(const Endpoint& endpoint) noexcept {
    abi::EndpointRow row{};
    row.endpoint = endpoint.handle;
    row.uid = endpoint.user->uid;
    row.net = endpoint.net->index;
    row.rank = abi::kNoRowRank;
    row.rtt_rank = abi::kNoRowRank;
    row.records_taken = endpoint.submissions.consumed();
    row.records_given = endpoint.completions.produced();
    row.records_unread = find_unread(endpoint);
    if (endpoint.reachable) {
        const std::uint64_t word =
            abi::notes_of(endpoint.region).handler.load(std::memory_order_relaxed);
        row.handler = static_cast<std::uint32_t>(word >> 32);
        row.handler_since_ms = static_cast<std::uint32_t>(word);
    }
    row.client_blocks = endpoint.deliverer != nullptr && endpoint.deliverer->blocked() ? 1 : 0;
    if (endpoint.send_frames) row.frames_unacked = endpoint.send_frames->held();
    if (endpoint.receive_frames) row.frames_undelivered = endpoint.receive_frames->held();
    if (endpoint.member == nullptr) return row;
    if (!endpoint.member->for_links()) {
        row.rank = endpoint.member->rank();
        row.size = endpoint.member->size();
    }
    find_slowest_peer(*endpoint.member, row);
    return row;
}

}  // namespace

std::size_t Engine::take_figures(std::span<abi::EndpointRow> out) const noexcept {
    const std::size_t count = std::min(out.size(), core_->active.size());
    std::transform(core_->active.begin(),
                   core_->active.begin() + static_cast<std::ptrdiff_t>(count), out.begin(),
                   [](const Endpoint* endpoint) { return row_of(*endpoint); });
    return count;
}

}  // namespace ulc::engine
