// SPDX-License-Identifier: BSD-3-Clause
// Rosters: made by the publisher when the last claim is in, and agreed in two stages (jobs/jobs.h).
//
//   publisher   claims complete ─▶ ROSTER rounds ─▶ all hold it ─▶ COMMIT rounds ─▶ all have formed
//   others                            ROSTER_ACK(holds) ┘   formed ◀─┘  ROSTER_ACK(formed) ┘
//
// No rank forms before every engine holds the same roster. So two publishers of one name cannot
// each form half a job, a claim that is an old frame is detected (no engine acknowledges for it),
// and a world handle that is in use somewhere is chosen again. A round broadcasts the parts that
// are due, one frame for all: all parts in the first round; later the parts that an incomplete
// acknowledgement lacks, or all again if an engine was silent; by unicast once a single engine is
// left. Rounds back off from roster_wait_min to roster_wait_max. They end when all have
// acknowledged; an engine whose claims are no longer repeated (kRoster) or whose ranks have died
// (kCommit) is not awaited. Receivers acknowledge at a random time within size × answer_slot, so
// that thousands do not answer at once.
#include <algorithm>
#include <utility>

#include "base/fnv.h"
#include "jobs/job_records.h"

namespace ulc::jobs {
namespace {

constexpr std::uint32_t kWorldTries = 16;
/// An incomplete roster is reported when no part has come for this time.
constexpr Nanos kPartGap = 2 * kMillisecond;

RosterEngine* engine_of(Publisher& publisher, const Mac& mac) noexcept {
    const auto at = std::lower_bound(publisher.engines.begin(), publisher.engines.end(), mac,
                                     [](const RosterEngine& e, const Mac& m) { return e.mac < m; });
    return at == publisher.engines.end() || at->mac != mac ? nullptr : &*at;
}

}  // namespace

// ------------------------------------------------------------------------------ the publisher

void Jobs::Impl::try_complete(JobRecord& record, Nanos now) {
    Publisher& publisher = *record.publisher;
    if (record.phase != JobPhase::kForming || publisher.stage != PublisherStage::kCollecting)
        return;
    if (publisher.claimed + record.locals.size() < record.size || has_twins(record, now)) return;
    record.roster.clear();
    for (const RemoteClaim& claim : publisher.claims) {
        record.roster.push_back(urtp::Peer{claim.mac, claim.handle, claim.incarnation});
    }
    for (const LocalRank& local : record.locals) {
        record.roster[local.rank] = urtp::Peer{config.mac, local.endpoint, config.incarnation};
    }
    if (record.by_hand && record.nonce.zero()) {
        for (auto& octet : record.nonce.octets)
            octet = static_cast<std::uint8_t>(tokens.next());
        record.nonce.octets[0] |= 1U;  // never all zeros
    }
    settle_attributes(record);
    record.version = publisher.version_max;
    record.first_seq =
        Seq{config.first_seq_fixed ? config.first_seq : static_cast<std::uint32_t>(tokens.next())};
    record.world = choose_world(record);
    publisher.roster = ++last_roster;
    std::vector<Mac> macs;
    for (const RemoteClaim& claim : publisher.claims) {
        if (claim.handle != 0) macs.push_back(claim.mac);
    }
    std::sort(macs.begin(), macs.end());
    macs.erase(std::unique(macs.begin(), macs.end()), macs.end());
    publisher.engines.clear();
    for (const Mac& mac : macs)
        publisher.engines.push_back(RosterEngine{mac, false, false});
    if (macs.empty()) return commit(record, now);
    if (!cut_parts(record)) {
        fail_job(record, Err::kLimit, 0, config.mac, macs.front(), now);
        return announce_failure(record);
    }
    const auto parts = static_cast<std::uint16_t>(publisher.part_first.size() - 1);
    start_rounds(record, PublisherStage::kRoster, parts, now);
}

/// Returns FNV-1a of the nonce and a salt; another salt if an engine has such a group already.
GroupHandle Jobs::Impl::choose_world(const JobRecord& record) noexcept {
    GroupHandle world = 0;
    for (std::uint32_t tries = 0; tries < kWorldTries; ++tries) {
        std::uint32_t hash = kFnvBasis32;
        for (const std::uint8_t octet : record.nonce.octets)
            hash = fnv1a_32(hash, octet);
        world = fnv1a_32(hash, record.publisher->salt & 0xffU) | kGroupBit;
        if (!world_in_use(world)) break;
        ++record.publisher->salt;
    }
    return world;
}

bool Jobs::Impl::world_in_use(GroupHandle world) const noexcept {
    if (config.group_in_use != nullptr && config.group_in_use(config.group_context, world)) {
        return true;
    }
    return std::any_of(records.begin(), records.end(),
                       [world](const auto& record) { return record->world == world; });
}

void Jobs::Impl::start_rounds(JobRecord& record, PublisherStage stage, std::uint16_t parts,
                              Nanos now) {
    Publisher& publisher = *record.publisher;
    publisher.stage = stage;
    publisher.parts = parts;
    publisher.pads = publisher.pads && stage == PublisherStage::kRoster;
    publisher.padded_rounds = 0;
    publisher.waiting = publisher.engines.size();
    for (RosterEngine& engine : publisher.engines)
        engine = RosterEngine{engine.mac, false, false};
    publisher.due.assign(parts + (publisher.pads ? 1U : 0U), false);
    publisher.missing.assign(publisher.due.size(), false);
    publisher.wait = config.roster_wait_min;
    publisher.proofs_until = now + kProofsMax;
    publish_round(record, now);
}

void Jobs::Impl::publish_round(JobRecord& record, Nanos now) {
    Publisher& publisher = *record.publisher;
    publisher.round_at = kNever;
    if (publisher.stage == PublisherStage::kRoster) {
        for (const RosterEngine& engine : publisher.engines) {
            const auto lapsed = [&](const RemoteClaim& claim) {
                return claim.mac == engine.mac && now - claim.heard > config.claim_life;
            };
            if (engine.acknowledged) continue;
            if (std::any_of(publisher.claims.begin(), publisher.claims.end(), lapsed)) {
                return drop_claims(record, Mac{engine.mac}, 0);
            }
        }
    }
    if (publisher.waiting == 0) {
        if (publisher.stage == PublisherStage::kRoster) finish_roster(record, now);
        return;
    }
    const bool somebody_silent = std::any_of(
        publisher.engines.begin(), publisher.engines.end(),
        [](const RosterEngine& e) { return !e.acknowledged && !e.reported && !e.holds; });
    const bool all_hold = std::ranges::all_of(
        publisher.engines, [](const RosterEngine& e) { return e.acknowledged || e.holds; });
    if (publisher.pads && all_hold) {
        if (++publisher.padded_rounds > kPaddedRounds) return shorten(record, now);
        publisher.missing[publisher.parts] = true;
    }
    publisher.due_count = 0;
    for (std::size_t part = 0; part < publisher.due.size(); ++part) {
        publisher.due[part] = somebody_silent || publisher.missing[part];
        if (publisher.due[part]) ++publisher.due_count;
    }
    publisher.missing.assign(publisher.due.size(), false);
    for (RosterEngine& engine : publisher.engines)
        engine.reported = false;
}

void Jobs::Impl::retract_roster(JobRecord& record) {
    Publisher& publisher = *record.publisher;
    publisher.stage = PublisherStage::kCollecting;
    publisher.waiting = 0;
    publisher.due_count = 0;
    publisher.round_at = kNever;
    publisher.engines.clear();
    record.roster.clear();
    record.world = 0;
}

/// `handle` 0: all claims of that node.
void Jobs::Impl::drop_claims(JobRecord& record, const Mac& mac, Handle handle) {
    if (!record.publisher) return;
    Publisher& publisher = *record.publisher;
    for (RemoteClaim& claim : publisher.claims) {
        if (claim.handle == 0 || claim.mac != mac) continue;
        if (handle != 0 && claim.handle != handle) continue;
        if (publisher.stage == PublisherStage::kRoster) retract_roster(record);
        claim = RemoteClaim{};
        --publisher.claimed;
    }
}

void Jobs::Impl::acknowledged(JobRecord& record, const Mac& mac, Nanos now) {
    RosterEngine* engine = engine_of(*record.publisher, mac);
    if (engine == nullptr || engine->acknowledged) return;
    engine->acknowledged = true;
    if (--record.publisher->waiting > 0) return;
    record.publisher->due_count = 0;
    record.publisher->round_at = kNever;
    if (record.publisher->stage == PublisherStage::kRoster) finish_roster(record, now);
}

void Jobs::Impl::finish_roster(JobRecord& record, Nanos now) {
    Publisher& publisher = *record.publisher;
    if (!waits_for_proofs(bonded_of(record), publisher.proofs_until, now))
        return commit(record, now);
    publisher.round_at = now + kProofStep;
}

void Jobs::Impl::commit(JobRecord& record, Nanos now) {
    record.publisher->claims = {};
    record.publisher->claimed = 0;
    start_rounds(record, PublisherStage::kCommit, 1, now);
    form(record, now);
}

void Jobs::Impl::on_roster_ack(const wire::JobBodyView& view, const Mac& source, Nanos now) {
    const wire::RosterAckBody& ack = *view.ack;
    for (JobRecord* record : records_of(view)) {
        if (!same_key(*record, view) || !record->publisher || record->roster.empty()) continue;
        Publisher& publisher = *record->publisher;
        if (record->nonce != view.nonce || publisher.roster != ack.roster) continue;
        if (publisher.stage == PublisherStage::kCommit) {
            if (ack.state == wire::RosterAckState::kFormed) acknowledged(*record, source, now);
            return;
        }
        RosterEngine* engine = engine_of(publisher, source);
        if (engine == nullptr || publisher.parts != ack.parts) return;
        switch (ack.state) {
            case wire::RosterAckState::kPartial:
                engine->reported = true;
                for (std::size_t part = 0; part < publisher.parts; ++part) {
                    const auto octet = static_cast<unsigned>(view.ack_bitmap[part / 8]);
                    if (((octet >> (part % 8)) & 1U) == 0) publisher.missing[part] = true;
                }
                break;
            case wire::RosterAckState::kHolds:
                engine->holds = true;
                if (!publisher.pads || ack.padding > 0) acknowledged(*record, source, now);
                break;
            case wire::RosterAckState::kRefused:
                retract_roster(*record);
                ++publisher.salt;
                try_complete(*record, now);
                break;
            case wire::RosterAckState::kFormed:
                break;
        }
        return;
    }
}

// ------------------------------------------------------------------------------ everybody

/// Begins to watch the node from which COMMIT is to come.
void Jobs::Impl::watch_publisher(JobRecord& record, Nanos now) {
    Assembly& assembly = *record.assembly;
    assembly.watched = liveness.watch(assembly.publisher, assembly.peers[0].incarnation, now);
    index.list_peers(record);
}

void Jobs::Impl::drop_assembly(JobRecord& record) noexcept {
    if (record.assembly && record.assembly->watched) liveness.unwatch(record.assembly->publisher);
    index.unlist_peers(record);
    record.assembly.reset();
}

void Jobs::Impl::form(JobRecord& record, Nanos now) {
    record.phase = JobPhase::kFormed;
    record.join_at = kNever;
    record.join_due = false;
    record.gone.assign(record.size, false);
    record.gone_events.reserve(record.size);
    record.by_mac.clear();
    for (Rank rank = 0; rank < record.size; ++rank) {
        if (record.roster[rank].mac != config.mac) record.by_mac.push_back(rank);
    }
    std::sort(record.by_mac.begin(), record.by_mac.end(), [&](Rank a, Rank b) {
        const Mac& of_a = record.roster[a].mac;
        const Mac& of_b = record.roster[b].mac;
        return of_a == of_b ? a < b : of_a < of_b;
    });
    index.list_peers(record);
    bool room = true;
    for (Rank rank = 0; rank < record.size; ++rank) {
        const urtp::Peer& peer = record.roster[rank];
        if (peer.mac == config.mac) {
            // Claims of this engine that ended while the roster was in flight.
            const LocalRank* local = record.local(rank);
            const bool here = local != nullptr && local->endpoint == peer.handle;
            if (!here) peer_gone(record, rank, JobEventKind::kPeerDied, now);
        } else if (!liveness.watch(peer.mac, peer.incarnation, now)) {
            record.gone[rank] = true;
            room = false;
        }
    }
    const std::vector<LocalRank> locals = record.locals;
    for (const LocalRank& local : locals) {
        const urtp::Peer& peer = record.roster[local.rank];
        if (room && peer.handle == local.endpoint && peer.mac == config.mac) {
            JobEvent event;
            event.kind = JobEventKind::kFormed;
            event.job = record.id;
            event.endpoint = local.endpoint;
            event.rank = local.rank;
            events.push_back(event);
            continue;
        }
        leave(record, local.endpoint, wire::LeaveReason::kDied, now);
        fail_local(record, local, room ? Err::kRankTaken : Err::kLimit, config.mac, peer.mac,
                   room ? "the roster names another life of this rank"
                        : "more nodes than nodes_max of this engine");
    }
}

namespace {

/// Returns true if a roster comes from the node of rank 0, which was heard to claim it, and says so
/// itself.
bool from_rank0(const JobRecord& record, const wire::JobBodyView& view, const Mac& source) {
    if (view.roster->first_rank == 0 && view.entries[0].mac != source) return false;
    return record.heard_rank0(source);
}

}  // namespace

void Jobs::Impl::on_roster(const wire::JobBodyView& view, const Mac& source, Nanos now) {
    bool wanted = false;
    for (JobRecord* record : records_of(view)) {
        if (!same_key(*record, view) || record->size != view.roster->size) continue;
        if (record->phase != JobPhase::kForming || record->publisher) continue;
        if (record->locals.empty()) continue;
        if (!from_rank0(*record, view, source)) {
            counters.add(Counter::drop_unproven);
            continue;
        }
        if (!take_part(*record, view, source, now)) continue;
        wanted = true;
        Assembly& assembly = *record->assembly;
        if (assembly.filled == record->size && assembly.ours && !assembly.complete) {
            assembly.complete = true;
            assembly.refused = world_in_use(assembly.world);
            assembly.proofs_until = now + kProofsMax;
            watch_publisher(*record, now);
        }
        const Nanos patience = assembly.complete ? 0 : kPartGap;
        if (!assembly.complete || assembly.ack_at == kNever) {
            assembly.ack_at = now + patience + jitter(*record);
        }
    }
    if (wanted) return;
    for (const wire::RosterEntry& entry : view.entries) {
        if (entry.mac != config.mac || entry.incarnation != config.incarnation) continue;
        const Handle handle = entry.handle;
        const JobRecord* owner = index.of_endpoint(handle);
        if (owner == nullptr) {
            // The claimant is gone, and its publisher did not hear of it.
            liveness.unknown_handle(source, handle, now);
            break;  // one answer to one frame
        } else if (owner->phase == JobPhase::kFormed && same_key(*owner, view) &&
                   owner->roster[0].mac != source) {
            reject_publisher(*owner, source, owner->roster[0].mac);
        }
    }
}

/// Returns false if it is not for us, or of another roster than the one held here.
bool Jobs::Impl::take_part(JobRecord& record, const wire::JobBodyView& view, const Mac& source,
                           Nanos now) {
    const wire::RosterBody& body = *view.roster;
    if (body.version < config.version_min || body.version > config.version_max) return false;
    bool names_us = false;
    bool names_others = false;
    for (const LocalRank& local : record.locals) {
        const int place = int{local.rank} - int{body.first_rank};
        if (place < 0 || static_cast<std::size_t>(place) >= view.entries.size()) continue;
        const wire::RosterEntry& entry = view.entries[static_cast<std::size_t>(place)];
        const bool ours = entry.mac == config.mac && entry.handle == local.endpoint &&
                          entry.incarnation == config.incarnation;
        (ours ? names_us : names_others) = true;
    }
    Assembly* assembly = record.assembly.get();
    const bool same = assembly != nullptr && assembly->publisher == source &&
                      assembly->roster == body.roster && assembly->parts == body.parts &&
                      assembly->nonce == view.nonce;
    if (names_others && !names_us && !(same && assembly->ours)) return false;
    if (!same) {
        const bool held = assembly != nullptr && assembly->ours;
        const bool fresh = held && now - assembly->heard <= config.claim_life;
        if (fresh && assembly->publisher == source) {
            if (Seq{body.roster}.before(Seq{assembly->roster})) return false;  // an old frame
        } else if (fresh) {
            if (!names_us) return false;
            reject_publisher(record, source, assembly->publisher);
            reject_publisher(record, assembly->publisher, source);
            return true;
        }
        drop_assembly(record);
        record.assembly = std::make_unique<Assembly>();
        assembly = record.assembly.get();
        assembly->publisher = source;
        assembly->nonce = view.nonce;
        assembly->roster = body.roster;
        assembly->parts = body.parts;
        assembly->world = body.world;
        assembly->first_seq = body.first_seq;
        assembly->version = body.version;
        assembly->medium = medium_said(body.medium);
        assembly->mtu = std::min<std::uint16_t>(body.mtu, attributes.mtu);
        assembly->peers.resize(record.size);
        assembly->held.assign(body.parts, false);
    }
    assembly->heard = now;
    assembly->ours = assembly->ours || names_us;
    assembly->held[body.part] = true;
    if (body.padding > 0)
        assembly->padding =
            padding_of(record, assembly->mtu, sizeof(wire::JobHead) + sizeof(wire::RosterAckBody));
    std::span<const std::byte> octets = view.attribute_octets;
    for (std::size_t i = 0; i < view.entries.size(); ++i) {
        const wire::RosterEntry& entry = view.entries[i];
        wire::NodeAttributes its;
        ULC_CHECK(wire::parse_attributes(octets.first(entry.attribute_octets), its));
        octets = octets.subspan(entry.attribute_octets);
        assembly->has_bonds = assembly->has_bonds || its.links > 1;
        assembly->patience = std::max(assembly->patience, its.patience_ms * kMillisecond);
        urtp::Peer& peer = assembly->peers[body.first_rank + i];
        if (peer.handle != 0) continue;
        peer = urtp::Peer{entry.mac, entry.handle, entry.incarnation};
        ++assembly->filled;
        if (its.links > 1 && entry.mac != config.mac) assembly->bonded.push_back(entry.mac);
    }
    return true;
}

void Jobs::Impl::on_commit(const wire::JobBodyView& view, const Mac& source, Nanos now) {
    bool waiting = false;
    for (JobRecord* record : records_of(view)) {
        Assembly* assembly = record->assembly.get();
        if (assembly == nullptr || !same_key(*record, view)) continue;
        const bool same = assembly->publisher == source && assembly->nonce == view.nonce &&
                          assembly->roster == view.commit->roster;
        if (!same || !assembly->complete || assembly->refused) continue;
        waiting = true;
        if (record->phase == JobPhase::kForming && !record->locals.empty()) {
            index.unlist_peers(*record);
            record->roster = std::move(assembly->peers);
            record->nonce = assembly->nonce;
            record->world = assembly->world;
            record->first_seq = Seq{assembly->first_seq};
            record->version = assembly->version;
            record->medium = assembly->medium;
            record->mtu = assembly->mtu;
            record->has_bonds = assembly->has_bonds;
            record->patience = std::max(record->patience, assembly->patience);
            assembly->held = {};
            assembly->ack_due = false;
            assembly->padded_ack_due = false;
            assembly->ack_at = kNever;
            form(*record, now);
            // From now on its node is watched for its ranks.
            if (std::exchange(assembly->watched, false)) liveness.unwatch(source);
        }
        if (assembly->ack_at == kNever) assembly->ack_at = now + jitter(*record);
    }
    if (waiting) return;
    // The endpoint for which it was meant has left, and its BYEs were lost: answer for it, or the
    // publisher waits.
    if (!commit_limit.take(now, config.liveness.strangers_per_second)) {
        counters.add(Counter::answers_limited);
        return;
    }
    const wire::JobKey* key = view.by_hand ? nullptr : key_of(view.nonce);
    (void)commit_answers.push_back(CommitAnswer{source, std::string(view.name), view.nonce,
                                                view.by_hand, view.commit->roster,
                                                key == nullptr ? wire::JobKey{} : *key});
    tx_hint = true;
}

void Jobs::Impl::reject_publisher(const JobRecord& record, const Mac& publisher, const Mac& other) {
    PendingReject reject{publisher, record.id, {}};
    reject.body.error = static_cast<std::uint32_t>(Err::kTwoRosters);
    reject.body.scope = wire::RejectScope::kJob;
    reject.body.rank = 0;
    reject.body.first = other;
    reject.body.second = publisher;
    (void)rejects.push_back(reject);  // full: the roster comes again
}

}  // namespace ulc::jobs
