// SPDX-License-Identifier: BSD-3-Clause
// This file takes the figures of endpoints and of their peers that `ulc top` and `ulc stat` show.
// Runs only when a reader asks: no round pays for it.
#include <algorithm>
#include <vector>

#include "abi/client_notes.h"
#include "engine/core.h"
#include "engine/engine.h"

namespace ulc::engine {
namespace {

/// Counts the completions that the client has not taken. It says so a quarter of the ring late, so
/// up to a quarter counts as none. Its cursor may hold any value.
std::uint32_t find_unread(const Endpoint& endpoint) noexcept {
    if (!endpoint.life().has_memory()) return 0;
    const std::uint32_t consumed =
        endpoint.region().control().cq_consumed.load(std::memory_order_relaxed);
    const std::uint32_t unread = endpoint.outlet()->completions().produced() - consumed;
    const std::uint32_t slots = endpoint.outlet()->completions().slots();
    return unread <= slots / 4 ? 0 : std::min(unread, slots);
}

/// Returns the round-trip time in ns; 0: none was measured, or the peer is on this node.
std::uint32_t rtt_of(const urtp::Session& session) noexcept {
    if (session.local || !session.rtt.measured()) return 0;
    return static_cast<std::uint32_t>(std::clamp<Nanos>(session.rtt.smoothed(), 1, UINT32_MAX));
}

/// Keeps the peer if it has more than the one before.
void keep_largest(std::uint32_t value, std::uint32_t rank, std::uint32_t& most,
                  std::uint32_t& of) noexcept {
    if (value <= most) return;
    most = value;
    of = rank;
}

/// Finds the peers that lose, ask and are slow.
void find_worst_peers(const urtp::Transport& member, std::span<std::uint32_t> unacked,
                      abi::EndpointRow& out) noexcept {
    for (std::uint32_t rank = 0; rank < member.size(); ++rank) {
        const urtp::Session* session = member.find_session(rank);
        if (session == nullptr) continue;
        const urtp::RepairCounts& counts = session->counts;
        keep_largest(rtt_of(*session), rank, out.rtt_ns_max, out.rtt_rank);
        keep_largest(counts.repairs_sent, rank, out.repairs_max, out.repairs_rank);
        keep_largest(counts.requests_received, rank, out.asks_max, out.asks_rank);
        keep_largest(counts.requests_sent, rank, out.asked_max, out.asked_rank);
        keep_largest(unacked[rank], rank, out.unacked_max, out.unacked_rank);
    }
}

/// Returns the packets that each peer has not acknowledged, by rank.
std::span<std::uint32_t> unacked_by_rank(const urtp::Transport& member,
                                         std::vector<std::uint32_t>& memory) {
    memory.assign(member.size(), 0);
    member.add_unacked(memory);
    return memory;
}

abi::EndpointRow row_of(const Endpoint& endpoint, std::vector<std::uint32_t>& memory) {
    abi::EndpointRow row{};
    row.endpoint = endpoint.handle();
    row.uid = endpoint.user().uid;
    row.net = endpoint.net().index();
    row.rank = abi::kNoRowRank;
    row.rtt_rank = row.repairs_rank = row.asks_rank = abi::kNoRowRank;
    row.asked_rank = row.unacked_rank = abi::kNoRowRank;
    row.records_taken = endpoint.inlet().consumed();
    row.records_given = endpoint.given();
    row.records_unread = find_unread(endpoint);
    if (endpoint.life().has_memory()) {
        const std::uint64_t word =
            abi::notes_of(endpoint.region()).handler.load(std::memory_order_relaxed);
        row.handler = static_cast<std::uint32_t>(word >> 32);
        row.handler_since_ms = static_cast<std::uint32_t>(word);
    }
    row.client_blocks = endpoint.outlet() != nullptr && endpoint.outlet()->blocked() ? 1 : 0;
    row.frames_unacked = endpoint.frames_unacked();
    row.frames_undelivered = endpoint.frames_undelivered();
    if (endpoint.member() == nullptr) return row;
    if (!endpoint.member()->for_links()) {
        row.rank = endpoint.member()->rank();
        row.size = endpoint.member()->size();
    }
    const urtp::RepairCounts& all = endpoint.member()->repair_counts();
    row.repairs_sent = all.repairs_sent;
    row.requests_received = all.requests_received;
    row.requests_sent = all.requests_sent;
    find_worst_peers(*endpoint.member(), unacked_by_rank(*endpoint.member(), memory), row);
    return row;
}

abi::StreamRow stream_of(const Endpoint& endpoint, const urtp::Session& session,
                         std::uint32_t unacked) noexcept {
    abi::StreamRow row{};
    row.endpoint = endpoint.handle();
    row.uid = endpoint.user().uid;
    row.net = endpoint.net().index();
    row.rank = endpoint.member()->for_links() ? abi::kNoRowRank : endpoint.member()->rank();
    row.peer = session.rank;
    row.repairs_sent = session.counts.repairs_sent;
    row.requests_received = session.counts.requests_received;
    row.requests_sent = session.counts.requests_sent;
    row.rtt_ns = rtt_of(session);
    row.unacked = unacked;
    const auto state = session.gone    ? abi::StreamState::kGone
                       : session.local ? abi::StreamState::kLocal
                                       : abi::StreamState::kOpen;
    row.state = static_cast<std::uint32_t>(state);
    return row;
}

}  // namespace

std::size_t Engine::take_figures(std::span<abi::EndpointRow> out) const {
    const std::size_t count = std::min(out.size(), core_->table().active().size());
    std::vector<std::uint32_t> memory;
    for (std::size_t n = 0; n < count; ++n)
        out[n] = row_of(*core_->table().active()[n], memory);
    return count;
}

std::size_t Engine::take_streams(std::span<abi::StreamRow> out, const UserId* of) const {
    std::size_t count = 0;
    std::vector<std::uint32_t> memory;
    for (const Endpoint* endpoint : core_->table().active()) {
        const urtp::Transport* member = endpoint->member();
        if (member == nullptr || (of != nullptr && endpoint->user().uid != *of)) continue;
        const std::span<const std::uint32_t> unacked = unacked_by_rank(*member, memory);
        for (std::uint32_t rank = 0; rank < member->size(); ++rank) {
            const urtp::Session* session = member->find_session(rank);
            if (session == nullptr) continue;
            if (count < out.size()) out[count] = stream_of(*endpoint, *session, unacked[rank]);
            ++count;
        }
    }
    return count;
}

}  // namespace ulc::engine
