// SPDX-License-Identifier: BSD-3-Clause
// The JOB and NODE frames that an engine sends, in order of urgency: rejections, acknowledgements,
// answers and pings, claims, roster parts and COMMITs, BYEs. Each call of next_tx() writes one
// (jobs/jobs.h).
#include <algorithm>
#include <cstring>

#include "jobs/job_records.h"
#include "wire/build.h"

namespace ulc::jobs {
namespace {

/// A claim of a job that forms is broadcast at most once in this time for each job that forms.
constexpr Nanos kBroadcastWait = 20 * kMillisecond;
constexpr Nanos kHurryWait = 100 * kMillisecond;
constexpr Nanos kHurryBurst = 64;

}  // namespace

std::size_t Jobs::Impl::next_tx(std::byte* frame, Nanos now) {
    wire::FrameHead head;
    head.destination = kBroadcastMac;
    head.source = config.mac;
    head.ether_type = config.ether_type;
    head.crc = config.crc;
    head.type = wire::FrameType::kJob;
    std::byte* body = frame + wire::kHeadOctets;
    const bool looks = tx_hint || !rejects.empty();  // else no record has anything
    const auto end = looks ? records.end() : records.begin();
    std::size_t octets = put_reject(body, head.destination);
    if (octets == 0) octets = put_commit_answer(body, head.destination);
    for (auto at = records.begin(); octets == 0 && at != end; ++at) {
        octets = put_ack(**at, body, head.destination);
    }
    wire::NodeBody node;
    if (octets == 0 && liveness.next_tx(head.destination, node, now)) {
        head.type = wire::FrameType::kNode;
        if (node.kind == wire::NodeKind::kPing) choose_question(head.destination, node);
        octets = wire::put_node(body, node);
    }
    if (octets == 0) {
        octets = links.next_tx(body, head.destination);
        if (octets > 0) head.type = wire::FrameType::kLink;
    }
    for (auto at = records.begin(); octets == 0 && at != end; ++at) {
        octets = put_join(**at, body, head.destination, now);
        if (octets == 0) octets = put_part(**at, body, head.destination, now);
        if (octets == 0) octets = put_bye(**at, body, now);
    }
    if (octets == 0) {
        tx_hint = false;
        if (looks) forget_finished(now);
    }
    if (looks) recompute_timer();
    return octets == 0 ? 0 : wire::build_control(frame, head, octets);
}

std::size_t Jobs::Impl::complete_node(std::byte* frame, const Mac& to,
                                      std::size_t octets) const noexcept {
    wire::FrameHead head;
    head.destination = to;
    head.source = config.mac;
    head.ether_type = config.ether_type;
    head.crc = config.crc;
    head.type = wire::FrameType::kNode;
    return wire::build_control(frame, head, octets);
}

std::size_t Jobs::Impl::tagged(bool by_hand, const wire::JobKey& key, std::byte* body,
                               std::size_t octets) const noexcept {
    if (by_hand || octets == 0) return octets;
    const wire::JobTag tag = wire::job_tag(key, config.mac, std::span(body, octets));
    std::memcpy(body + octets, &tag, sizeof tag);
    return octets + sizeof tag;
}

/// Only an engine that was heard to have rank 0 is believed, so one that
/// claims no more introduces itself first.
std::size_t Jobs::Impl::put_reject(std::byte* body, Mac& to) {
    while (!rejects.empty()) {
        PendingReject& reject = rejects[rejects.size() - 1];
        const JobRecord* record = find(reject.job);
        to = reject.to;
        if (record != nullptr && !reject.introduced && !reject.old && record->publisher &&
            record->phase != JobPhase::kForming) {
            for (PendingReject& other : rejects) {
                if (other.job == reject.job && other.to == to) other.introduced = true;
            }
            return put_introduction(*record, body);
        }
        const PendingReject sent = reject;
        rejects.pop_back();
        if (record == nullptr) continue;
        const wire::Nonce& nonce = sent.old ? record->secret : record->nonce;
        const std::size_t octets = wire::put_reject(
            body, wire::job_head(wire::JobKind::kReject, record->name, nonce, record->by_hand),
            sent.body);
        return tagged(record->by_hand || sent.old, record->key, body, octets);
    }
    return 0;
}

std::size_t Jobs::Impl::put_introduction(const JobRecord& record, std::byte* body) const {
    wire::JoinClaim claim{};
    claim.handle = record.publisher->rank0;
    return put_claims(record, body, std::span(&claim, 1), wire::kJobIntroduces, {});
}

// J-38
std::size_t Jobs::Impl::put_join_old(JobRecord& record, std::byte* body, Mac& to) const {
    to = record.join_old;
    record.join_old = Mac{};
    wire::JoinClaim claim{};
    claim.rank = record.locals.front().rank;
    claim.handle = record.locals.front().endpoint;
    return put_claims(record, body, std::span(&claim, 1), 0, {});
}

std::size_t Jobs::Impl::put_claims(const JobRecord& record, std::byte* body,
                                   std::span<const wire::JoinClaim> claims, std::uint8_t flags,
                                   std::span<const std::byte> its_attributes) const {
    wire::JoinBody join{};
    join.size = record.size;
    join.version_min = config.version_min;
    join.version_max = config.version_max;
    join.incarnation = config.incarnation;
    join.claims = static_cast<std::uint16_t>(claims.size());
    join.attribute_octets = static_cast<std::uint16_t>(its_attributes.size());
    join.profile = wire::profile_field(record.profile);
    const wire::JobHead head =
        wire::job_head(wire::JobKind::kJoin, record.name, record.nonce, record.by_hand, flags);
    return tagged(record.by_hand, record.key, body,
                  wire::put_join(body, head, join, claims, its_attributes));
}

std::size_t Jobs::Impl::put_commit_answer(std::byte* body, Mac& to) {
    if (commit_answers.empty()) return 0;
    const CommitAnswer answer = commit_answers[commit_answers.size() - 1];
    commit_answers.pop_back();
    wire::RosterAckBody ack{};
    ack.roster = answer.roster;
    ack.parts = 1;
    ack.state = wire::RosterAckState::kFormed;
    to = answer.to;
    const std::size_t octets = wire::put_roster_ack(
        body, wire::job_head(wire::JobKind::kRosterAck, answer.name, answer.nonce, answer.by_hand),
        ack, {});
    return tagged(answer.by_hand, answer.key, body, octets);
}

std::size_t Jobs::Impl::put_ack(JobRecord& record, std::byte* body, Mac& to) {
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
    return tagged(record.by_hand, record.key, body, octets);
}

/// Once more now, and then after a wait that doubles each time.
void Jobs::Impl::make_join_due(JobRecord& record, Nanos now) {
    record.join_due = true;
    record.join_cursor = 0;
    // Claims of all jobs together are repeated at most 50 times a second, as long as none of them
    // is forgotten for being repeated too late. The first repeats of a job come earlier while there
    // have been few of them: a user may begin jobs without end.
    const auto forming = static_cast<Nanos>(std::ranges::count_if(records, [](const auto& one) {
        return one->phase == JobPhase::kForming && !one->locals.empty();
    }));
    const Nanos paced = std::min(forming * kBroadcastWait, config.claim_life * 3 / 4);
    const Nanos steady = std::max(config.join_wait_max, paced);
    if (record.join_wait < steady && !may_hurry(now)) record.join_wait = steady;
    record.join_at = now + record.join_wait + jitter(record);
    record.join_wait = std::min(record.join_wait * 2, steady);
}

/// Takes one of the early repeats: there are kHurryBurst at once, then one each kHurryWait.
bool Jobs::Impl::may_hurry(Nanos now) noexcept {
    const Nanos due = std::max(hurry_full_at, now);
    if (due - now > kHurryWait * (kHurryBurst - 1)) return false;
    hurry_full_at = due + kHurryWait;
    return true;
}

std::size_t Jobs::Impl::put_join(JobRecord& record, std::byte* body, Mac& to, Nanos now) {
    if (record.phase != JobPhase::kForming) return 0;
    if (record.join_old != Mac{} && !record.locals.empty()) return put_join_old(record, body, to);
    if (!record.join_due && record.join_at <= now && !record.locals.empty()) {
        // Claimed just now, or a round that was longer than the wait: this JOIN does not wait for
        // the next timer.
        make_join_due(record, now);
    }
    if (!record.join_due || record.join_cursor >= record.locals.size()) {
        record.join_due = false;
        return 0;
    }
    wire::JoinClaim claims[wire::kJoinClaimsMax];
    const wire::AttributeOctets own = wire::octets_of(attributes_in(record));
    const std::size_t fit = wire::join_claims_max(own.size());
    const std::size_t count = std::min(record.locals.size() - record.join_cursor, fit);
    for (std::size_t i = 0; i < count; ++i) {
        const LocalRank& local = record.locals[record.join_cursor + i];
        claims[i].rank = local.rank;
        claims[i].handle = local.endpoint;
    }
    record.join_cursor += count;
    return put_claims(record, body, std::span(claims, count), 0, wire::span_of(own));
}

std::size_t Jobs::Impl::put_part(JobRecord& record, std::byte* body, Mac& to, Nanos now) {
    Publisher* publisher = record.publisher.get();
    if (publisher == nullptr || publisher->due_count == 0) return 0;
    const auto due = std::find(publisher->due.begin(), publisher->due.end(), true);
    ULC_CHECK(due != publisher->due.end());
    *due = false;
    if (--publisher->due_count == 0) {
        publisher->round_at = now + publisher->wait + record.size * config.answer_slot;
        publisher->wait = std::min(publisher->wait * 2, config.roster_wait_max);
    }
    if (publisher->waiting == 1) {
        const auto last = std::find_if(publisher->engines.begin(), publisher->engines.end(),
                                       [](const RosterEngine& e) { return !e.acknowledged; });
        to = last->mac;
    }
    if (publisher->stage == PublisherStage::kCommit) {
        wire::CommitBody commit{};
        commit.roster = publisher->roster;
        const std::size_t octets = wire::put_commit(
            body, wire::job_head(wire::JobKind::kCommit, record.name, record.nonce, record.by_hand),
            commit);
        return tagged(record.by_hand, record.key, body, octets);
    }
    const auto part = static_cast<std::size_t>(due - publisher->due.begin());
    const bool pads = part == publisher->parts;
    return put_roster(record, pads ? 0 : part, pads, body);
}

std::size_t Jobs::Impl::put_roster(const JobRecord& record, std::size_t part, bool pads,
                                   std::byte* body) {
    const Publisher* publisher = record.publisher.get();
    const std::size_t first = publisher->part_first[part];
    const std::size_t count = publisher->part_first[part + 1] - first;
    std::vector<wire::RosterEntry> entries(count);
    std::vector<std::byte> attributes_of_all;
    for (std::size_t i = 0; i < count; ++i) {
        const auto rank = static_cast<Rank>(first + i);
        const urtp::Peer& peer = record.roster[rank];
        entries[i].mac = peer.mac;
        entries[i].handle = peer.handle;
        entries[i].incarnation = peer.incarnation;
        if (!publisher->leads[rank]) continue;
        const wire::AttributeOctets octets = attributes_of(record, rank);
        entries[i].attribute_octets = static_cast<std::uint8_t>(octets.size());
        attributes_of_all.insert(attributes_of_all.end(), octets.begin(), octets.end());
    }
    wire::RosterBody roster{};
    roster.roster = publisher->roster;
    roster.world = record.world;
    roster.first_seq = record.first_seq.value;
    roster.size = record.size;
    roster.part = static_cast<std::uint16_t>(part);
    roster.parts = publisher->parts;
    roster.first_rank = static_cast<std::uint16_t>(first);
    roster.entries = static_cast<std::uint16_t>(count);
    roster.version = record.version;
    roster.medium = static_cast<std::uint8_t>(record.medium);
    roster.mtu = record.mtu;
    if (pads)
        roster.padding =
            padding_of(record, record.mtu,
                       sizeof(wire::JobHead) + sizeof roster +
                           entries.size() * sizeof(wire::RosterEntry) + attributes_of_all.size());
    const std::size_t octets = wire::put_roster(
        body, wire::job_head(wire::JobKind::kRoster, record.name, record.nonce, record.by_hand),
        roster, entries, attributes_of_all);
    return tagged(record.by_hand, record.key, body, octets);
}

std::size_t Jobs::Impl::put_bye(JobRecord& record, std::byte* body, Nanos now) {
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
    return tagged(record.by_hand, record.key, body, octets);
}

}  // namespace ulc::jobs
