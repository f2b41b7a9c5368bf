// SPDX-License-Identifier: BSD-3-Clause
// Beginnings and ends of ranks; job_failures.cc has the ends of claims.
#include "jobs/job_ranks.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"
#include "wire/mac_text.h"

namespace ulc::jobs {

JobRanks::JobRanks(const OwnNode& node, JobTable& table, Liveness& liveness, Counters& counters)
    : node_(node), table_(table), liveness_(liveness), counters_(counters) {}

void JobRanks::form(JobRecord& record, Nanos now) {
    const Mac own = node_.config().mac;
    record.begin(own);
    table_.list_peers(record);
    bool all_watched = true;
    for (Rank rank = 0; rank < record.size; ++rank) {
        const urtp::Peer& peer = record.roster[rank];
        if (peer.mac == own) {
            // Claims of this engine that ended while the roster was in flight.
            const LocalRank* local = record.local(rank);
            const bool here = local != nullptr && local->endpoint == peer.handle;
            if (!here) peer_gone(record, rank, JobEventKind::kPeerDied);
        } else if (!liveness_.watch(peer.mac, peer.incarnation, now)) {
            record.gone[rank] = true;
            all_watched = false;
        }
    }
    const std::vector<LocalRank> locals = record.locals;
    for (const LocalRank& local : locals) {
        const urtp::Peer& peer = record.roster[local.rank];
        if (all_watched && peer.handle == local.endpoint && peer.mac == own) {
            JobEvent event;
            event.kind = JobEventKind::kFormed;
            event.job = record.id;
            event.endpoint = local.endpoint;
            event.rank = local.rank;
            events_.push_back(event);
            continue;
        }
        leave(record, local.endpoint, wire::LeaveReason::kDied, now);
        fail_local(record, local, all_watched ? Err::kRankTaken : Err::kLimit, own, peer.mac,
                   all_watched ? "the roster names another life of this rank"
                               : "more nodes than nodes_max of this engine");
    }
}

void JobRanks::leave(JobRecord& record, Handle endpoint, wire::LeaveReason reason, Nanos now) {
    const JobsConfig& config = node_.config();
    const LocalRank* local = record.local_endpoint(endpoint);
    if (local == nullptr) return;
    const Rank rank = local->rank;
    table_.remove_local(record, static_cast<std::size_t>(local - record.locals.data()));
    std::erase_if(events_, [endpoint](const JobEvent& e) { return e.endpoint == endpoint; });
    liveness_.ended(endpoint, reason);
    if (record.size > 1) {
        record.byes.push_back(Bye{rank, endpoint, reason, config.byes, now, config.bye_wait});
    }
    if (record.phase == JobPhase::kFormed) {
        peer_gone(
            record, rank,
            reason == wire::LeaveReason::kLeft ? JobEventKind::kPeerLeft : JobEventKind::kPeerDied);
        if (record.locals.empty()) record.phase = JobPhase::kEnding;
    } else if (rank == 0) {
        record.stop_publishing();
    }
}

void JobRanks::on_bye(const wire::JobBodyView& view, const Mac& source) {
    const Rank rank = view.bye->rank;
    const Handle handle = view.bye->handle;
    const auto kind = view.bye->reason == wire::LeaveReason::kLeft ? JobEventKind::kPeerLeft
                                                                   : JobEventKind::kPeerDied;
    for (JobRecord* record : table_.records_of(view)) {
        if (!same_key(*record, view) || rank >= record->size) continue;
        if (record->phase == JobPhase::kFormed || record->phase == JobPhase::kEnding) {
            const urtp::Peer& peer = record->roster[rank];
            if (peer.mac == source && peer.handle == handle) peer_gone(*record, rank, kind);
        } else if (record->phase == JobPhase::kForming) {
            record->drop_claims(source, handle);
            const Assembly* assembly = record->assembly.get();
            const bool held = assembly != nullptr && assembly->publisher == source &&
                              !assembly->peers.empty() && assembly->peers[0].handle == handle;
            if (held && rank == 0)
                publisher_gone(*record,
                               kind == JobEventKind::kPeerLeft ? Err::kPeerLeft : Err::kPeerDied);
        }
    }
}

void JobRanks::peer_gone(JobRecord& record, Rank rank, JobEventKind kind) {
    if (record.gone[rank]) return;
    record.gone[rank] = true;
    record.gone_events.emplace_back(rank, kind);
    const Mac mac = record.roster[rank].mac;
    if (mac == node_.config().mac) return;
    liveness_.unwatch(mac);
    if (!record.publisher || record.publisher->stage != PublisherStage::kCommit) return;
    for (std::size_t other = 0; other < record.roster.size(); ++other) {
        if (record.roster[other].mac == mac && !record.gone[other]) return;
    }
    record.publisher->acknowledge(mac);  // no rank is left there that needs the roster
}

void JobRanks::node_died(JobRecord& record, const Mac& mac, Rank counted) {
    for (const Rank rank : record.ranks_at(mac)) {
        if (record.gone[rank]) continue;
        if (rank != counted) counters_.add(Counter::peers_dead);
        peer_gone(record, rank, JobEventKind::kPeerDied);
    }
}

void JobRanks::exclude(JobRecord& record, Rank rank, Nanos now) {
    if (record.gone[rank]) return;
    const urtp::Peer peer = record.roster[rank];
    table_.exclude(record, rank);
    peer_gone(record, rank, JobEventKind::kPeerExcluded);
    if (peer.mac == node_.config().mac) return excluded(record, peer.handle, peer.mac);
    liveness_.held_for_dead(peer.mac, peer.handle, wire::LeaveReason::kExcluded, now);
}

void JobRanks::excluded(JobRecord& record, Handle endpoint, const Mac& by) {
    if (record.is_excluded(endpoint, by)) return;
    record.excluded_by.push_back({endpoint, by});
    counters_.add(Counter::expelled);
    JobEvent event;
    event.kind = JobEventKind::kExcluded;
    event.job = record.id;
    event.endpoint = endpoint;
    event.first = by;
    events_.push_back(event);
}

std::size_t JobRanks::put_bye(JobRecord& record, std::byte* body, Nanos now) const {
    const auto due = std::find_if(record.byes.begin(), record.byes.end(),
                                  [now](const Bye& bye) { return bye.at <= now; });
    if (due == record.byes.end()) return 0;
    wire::ByeBody bye{};
    bye.rank = due->rank;
    bye.reason = due->reason;
    bye.handle = due->handle;
    due->at = now + due->wait;
    due->wait *= 2;
    if (due->left <= 1) {
        record.byes.erase(due);
    } else {
        --due->left;
    }
    const std::size_t octets = wire::put_bye(
        body, wire::job_head(wire::JobKind::kBye, record.name, record.nonce, record.by_hand), bye);
    return node_.tagged(record.by_hand, record.key, body, octets);
}

// ------------------------------------------------------------------------------ events

void JobRanks::shortened(const JobRecord& record, const Mac& node) {
    JobEvent event;
    event.kind = JobEventKind::kShortened;
    event.job = record.id;
    event.first = node;
    event.text = "frames of " + std::to_string(record.mtu) + " bytes do not pass to or from node " +
                 text_of(node) + ": this job sends " + std::to_string(node_.config().mtu_sure) +
                 "; raise the MTU of the switches and routers between, or lower it on the nodes";
    events_.push_back(std::move(event));
}

JobEvent JobRanks::take_event() {
    ULC_CHECK(has_event());
    JobEvent event = std::move(events_.front());
    events_.pop_front();
    return event;
}

void JobRanks::check_invariants() const {
    std::set<Handle> ended;
    for (const JobEvent& event : events_) {
        ULC_CHECK(event.job != kNoJob);
        if (event.kind == JobEventKind::kFormed) ULC_CHECK(ended.insert(event.endpoint).second);
    }
}

}  // namespace ulc::jobs
