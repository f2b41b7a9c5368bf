// SPDX-License-Identifier: BSD-3-Clause
#include "jobs/forming/roster_receiver.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace ulc::jobs {
namespace {

/// An incomplete roster is reported when no part has come for this time.
constexpr Nanos kPartGap = 2 * kMillisecond;

/// Returns true if a roster comes from the node of rank 0, which was heard to claim it, and says so
/// itself.
bool from_rank0(const JobRecord& record, const wire::JobBodyView& view, const Mac& source) {
    if (view.roster->first_rank == 0 && view.entries[0].mac != source) return false;
    return record.heard_rank0(source);
}

}  // namespace

RosterReceiver::RosterReceiver(OwnNode& node, JobTable& table, JobRanks& ranks, Rejects& rejects,
                               const NodeAddresses& addresses, Liveness& liveness,
                               Counters& counters)
    : node_(node),
      table_(table),
      ranks_(ranks),
      rejects_(rejects),
      addresses_(addresses),
      liveness_(liveness),
      counters_(counters) {}

// ------------------------------------------------------------------------------ ROSTER

void RosterReceiver::on_roster(const wire::JobBodyView& view, const Mac& source, Nanos now) {
    bool wanted = false;
    for (JobRecord* record : table_.records_of(view)) {
        if (!same_key(*record, view) || record->size != view.roster->size) continue;
        if (record->phase != JobPhase::kForming || record->publisher) continue;
        if (record->locals.empty()) continue;
        if (!from_rank0(*record, view, source)) {
            counters_.add(Counter::drop_unproven);
            continue;
        }
        if (!take_part(*record, view, source, now)) continue;
        wanted = true;
        Assembly& assembly = *record->assembly;
        if (assembly.filled == record->size && assembly.ours && !assembly.complete) {
            assembly.complete = true;
            assembly.refused = table_.world_in_use(assembly.world);
            assembly.proofs_until = now + kProofsMax;
            table_.watch_publisher(*record, now);
        }
        const Nanos patience = assembly.complete ? 0 : kPartGap;
        if (!assembly.complete || assembly.ack_at == kNever) {
            assembly.ack_at = now + patience + node_.jitter(*record);
        }
    }
    if (!wanted) answer_unwanted(view, source, now);
}

void RosterReceiver::answer_unwanted(const wire::JobBodyView& view, const Mac& source, Nanos now) {
    const JobsConfig& config = node_.config();
    for (const wire::RosterEntry& entry : view.entries) {
        if (entry.mac != config.mac || entry.incarnation != config.incarnation) continue;
        const Handle handle = entry.handle;
        const JobRecord* owner = table_.index().of_endpoint(handle);
        if (owner == nullptr) {
            // The claimant is gone, and its publisher did not hear of it.
            liveness_.unknown_handle(source, handle, now);
            break;  // one answer to one frame
        } else if (owner->phase == JobPhase::kFormed && same_key(*owner, view) &&
                   owner->roster[0].mac != source) {
            rejects_.reject_publisher(*owner, source, owner->roster[0].mac);
        }
    }
}

bool RosterReceiver::take_part(JobRecord& record, const wire::JobBodyView& view, const Mac& source,
                               Nanos now) {
    const JobsConfig& config = node_.config();
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
            rejects_.reject_publisher(record, source, assembly->publisher);
            rejects_.reject_publisher(record, assembly->publisher, source);
            return true;
        }
        table_.drop_assembly(record);
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
        assembly->mtu = std::min<std::uint16_t>(body.mtu, node_.attributes().mtu);
        assembly->peers.resize(record.size);
        assembly->held.assign(body.parts, false);
    }
    assembly->heard = now;
    assembly->ours = assembly->ours || names_us;
    assembly->held[body.part] = true;
    if (body.padding > 0)
        assembly->padding = node_.padding_of(record, assembly->mtu,
                                             sizeof(wire::JobHead) + sizeof(wire::RosterAckBody));
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

// ------------------------------------------------------------------------------ COMMIT

bool RosterReceiver::on_commit(const wire::JobBodyView& view, const Mac& source, Nanos now) {
    bool waiting = false;
    for (JobRecord* record : table_.records_of(view)) {
        Assembly* assembly = record->assembly.get();
        if (assembly == nullptr || !same_key(*record, view)) continue;
        const bool same = assembly->publisher == source && assembly->nonce == view.nonce &&
                          assembly->roster == view.commit->roster;
        if (!same || !assembly->complete || assembly->refused) continue;
        waiting = true;
        if (record->phase == JobPhase::kForming && !record->locals.empty()) commit(*record, now);
        if (assembly->ack_at == kNever) assembly->ack_at = now + node_.jitter(*record);
    }
    if (waiting) return false;
    // The endpoint for which it was meant has left, and its BYEs were lost: answer for it, or the
    // publisher waits.
    if (!commit_limit_.take(now, node_.config().liveness.strangers_per_second)) {
        counters_.add(Counter::answers_limited);
        return false;
    }
    const wire::JobKey* key = view.by_hand ? nullptr : table_.key_of(view.nonce);
    (void)commit_answers_.push_back(CommitAnswer{source, std::string(view.name), view.nonce,
                                                 view.by_hand, view.commit->roster,
                                                 key == nullptr ? wire::JobKey{} : *key});
    return true;
}

void RosterReceiver::commit(JobRecord& record, Nanos now) {
    Assembly& assembly = *record.assembly;
    table_.unlist_peers(record);
    record.roster = std::move(assembly.peers);
    record.nonce = assembly.nonce;
    record.world = assembly.world;
    record.first_seq = Seq{assembly.first_seq};
    record.version = assembly.version;
    record.medium = assembly.medium;
    record.mtu = assembly.mtu;
    record.has_bonds = assembly.has_bonds;
    record.patience = std::max(record.patience, assembly.patience);
    assembly.held = {};
    assembly.ack_due = false;
    assembly.padded_ack_due = false;
    assembly.ack_at = kNever;
    ranks_.form(record, now);
    // From now on its node is watched for its ranks.
    if (std::exchange(assembly.watched, false)) liveness_.unwatch(assembly.publisher);
}

// ------------------------------------------------------------------------------ acknowledgements

void RosterReceiver::on_timer(JobRecord& record, Nanos now) {
    if (!record.assembly || record.assembly->ack_at > now) return;
    Assembly& assembly = *record.assembly;
    const bool waits = assembly.complete && record.phase == JobPhase::kForming &&
                       now < assembly.proofs_until && !addresses_.are_settled(assembly.bonded);
    assembly.ack_at = waits ? now + kProofStep : kNever;
    assembly.ack_due = !waits;
}

std::size_t RosterReceiver::put_commit_answer(std::byte* body, Mac& to) {
    if (commit_answers_.empty()) return 0;
    const CommitAnswer answer = commit_answers_[commit_answers_.size() - 1];
    commit_answers_.pop_back();
    wire::RosterAckBody ack{};
    ack.roster = answer.roster;
    ack.parts = 1;
    ack.state = wire::RosterAckState::kFormed;
    to = answer.to;
    const std::size_t octets = wire::put_roster_ack(
        body, wire::job_head(wire::JobKind::kRosterAck, answer.name, answer.nonce, answer.by_hand),
        ack, {});
    return node_.tagged(answer.by_hand, answer.key, body, octets);
}

std::size_t RosterReceiver::put_ack(JobRecord& record, std::byte* body, Mac& to) {
    Assembly* assembly = record.assembly.get();
    if (assembly == nullptr || (!assembly->ack_due && !assembly->padded_ack_due)) return 0;
    const bool pads = !assembly->ack_due;
    assembly->ack_due = false;
    assembly->padded_ack_due = false;
    std::byte bitmap[wire::kRosterBitmapOctetsMax]{};
    wire::RosterAckBody ack{};
    ack.roster = assembly->roster;
    ack.parts = assembly->parts;
    if (!record.roster.empty()) {
        ack.parts = 1;
        ack.state = wire::RosterAckState::kFormed;
    } else if (assembly->complete) {
        ack.state =
            assembly->refused ? wire::RosterAckState::kRefused : wire::RosterAckState::kHolds;
        if (pads) ack.padding = assembly->padding;
        assembly->padded_ack_due = !pads && !assembly->refused && assembly->padding > 0;
    } else {
        ack.state = wire::RosterAckState::kPartial;
        ack.bitmap_octets = static_cast<std::uint8_t>((std::size_t{assembly->parts} + 7) / 8);
        for (std::size_t part = 0; part < assembly->parts; ++part) {
            if (assembly->held[part]) {
                bitmap[part / 8] |= static_cast<std::byte>(1U << (part % 8));
            }
        }
    }
    to = assembly->publisher;
    const std::size_t octets = wire::put_roster_ack(
        body,
        wire::job_head(wire::JobKind::kRosterAck, record.name, assembly->nonce, record.by_hand),
        ack, std::span(bitmap, ack.bitmap_octets));
    return node_.tagged(record.by_hand, record.key, body, octets);
}

}  // namespace ulc::jobs
