// SPDX-License-Identifier: BSD-3-Clause
#include "jobs/forming/roster_publisher.h"

#include <algorithm>

#include "base/check.h"
#include "base/fnv.h"

namespace ulc::jobs {
namespace {

constexpr std::uint32_t kWorldTries = 16;
/// Rounds in which a long frame is sent to engines that hold the roster, until it counts as lost.
constexpr std::uint8_t kPaddedRounds = 6;

}  // namespace

RosterPublisher::RosterPublisher(OwnNode& node, JobTable& table, JobRanks& ranks, Rejects& rejects,
                                 const NodeAddresses& addresses)
    : node_(node),
      table_(table),
      ranks_(ranks),
      rejects_(rejects),
      addresses_(addresses),
      last_roster_(node.next_number()) {}

void RosterPublisher::begin(JobRecord& record, Handle rank0) {
    record.publisher = std::make_unique<Publisher>();
    record.publisher->rank0 = rank0;
    record.publisher->claims.resize(record.size);
    record.publisher->version_min = node_.config().version_min;
    record.publisher->version_max = node_.config().version_max;
}

// ------------------------------------------------------------------------------ before the roster

void RosterPublisher::try_complete(JobRecord& record, Nanos now) {
    const JobsConfig& config = node_.config();
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
    if (record.by_hand && record.nonce.zero()) record.nonce = node_.next_nonce();
    settle_attributes(record);
    record.version = publisher.version_max;
    record.first_seq = Seq{config.first_seq_fixed ? config.first_seq : node_.next_number()};
    record.world = choose_world(record);
    publisher.roster = ++last_roster_;
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
        ranks_.fail_job(record, Err::kLimit, 0, config.mac, macs.front(), now);
        return rejects_.announce_failure(record);
    }
    const auto parts = static_cast<std::uint16_t>(publisher.part_first.size() - 1);
    start_rounds(record, PublisherStage::kRoster, parts, now);
}

/// Returns FNV-1a of the nonce and a salt; another salt if an engine has such a group already.
GroupHandle RosterPublisher::choose_world(const JobRecord& record) const noexcept {
    GroupHandle world = 0;
    for (std::uint32_t tries = 0; tries < kWorldTries; ++tries) {
        std::uint32_t hash = kFnvBasis32;
        for (const std::uint8_t octet : record.nonce.octets)
            hash = fnv1a_32(hash, octet);
        world = fnv1a_32(hash, record.publisher->salt & 0xffU) | kGroupBit;
        if (!table_.world_in_use(world)) break;
        ++record.publisher->salt;
    }
    return world;
}

// J-39, J-47
void RosterPublisher::settle_attributes(JobRecord& record) const {
    record.mtu = node_.attributes().mtu;
    record.has_bonds = node_.attributes().links > 1;
    for (const RemoteClaim& claim : record.publisher->claims) {
        if (claim.handle == 0) continue;
        wire::NodeAttributes its;
        ULC_CHECK(wire::parse_attributes(std::as_bytes(std::span(claim.attributes)), its));
        record.mtu = std::min(record.mtu, its.mtu);
        record.has_bonds = record.has_bonds || its.links > 1;
        record.patience = std::max(record.patience, its.patience_ms * kMillisecond);
    }
}

std::vector<Mac> RosterPublisher::bonded_of(const JobRecord& record) const {
    std::vector<Mac> bonded;
    for (const RemoteClaim& claim : record.publisher->claims) {
        if (claim.handle == 0 || claim.mac == node_.config().mac) continue;
        wire::NodeAttributes its;
        ULC_CHECK(wire::parse_attributes(std::as_bytes(std::span(claim.attributes)), its));
        if (its.links > 1) bonded.push_back(claim.mac);
    }
    return bonded;
}

// ------------------------------------------------------------------------------ rounds

void RosterPublisher::start_rounds(JobRecord& record, PublisherStage stage, std::uint16_t parts,
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
    publisher.wait = node_.config().roster_wait_min;
    publisher.proofs_until = now + kProofsMax;
    publish_round(record, now);
}

void RosterPublisher::publish_round(JobRecord& record, Nanos now) {
    Publisher& publisher = *record.publisher;
    publisher.round_at = kNever;
    if (publisher.stage == PublisherStage::kRoster) {
        for (const RosterEngine& engine : publisher.engines) {
            const auto lapsed = [&](const RemoteClaim& claim) {
                return claim.mac == engine.mac && now - claim.heard > node_.config().claim_life;
            };
            if (engine.acknowledged) continue;
            if (std::any_of(publisher.claims.begin(), publisher.claims.end(), lapsed)) {
                return record.drop_claims(Mac{engine.mac}, 0);
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

void RosterPublisher::on_timer(JobRecord& record, Nanos now) {
    if (record.publisher && record.publisher->round_at <= now) publish_round(record, now);
}

void RosterPublisher::finish_roster(JobRecord& record, Nanos now) {
    Publisher& publisher = *record.publisher;
    if (now >= publisher.proofs_until || addresses_.are_settled(bonded_of(record)))
        return commit(record, now);
    publisher.round_at = now + kProofStep;
}

void RosterPublisher::commit(JobRecord& record, Nanos now) {
    record.publisher->claims = {};
    record.publisher->claimed = 0;
    start_rounds(record, PublisherStage::kCommit, 1, now);
    ranks_.form(record, now);
}

void RosterPublisher::on_roster_ack(const wire::JobBodyView& view, const Mac& source, Nanos now) {
    const wire::RosterAckBody& ack = *view.ack;
    for (JobRecord* record : table_.records_of(view)) {
        if (!same_key(*record, view) || !record->publisher || record->roster.empty()) continue;
        Publisher& publisher = *record->publisher;
        if (record->nonce != view.nonce || publisher.roster != ack.roster) continue;
        if (publisher.stage == PublisherStage::kCommit) {
            if (ack.state == wire::RosterAckState::kFormed) publisher.acknowledge(source);
            return;
        }
        RosterEngine* engine = publisher.engine_of(source);
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
                if ((!publisher.pads || ack.padding > 0) && publisher.acknowledge(source))
                    finish_roster(*record, now);
                break;
            case wire::RosterAckState::kRefused:
                record->retract_roster();
                ++publisher.salt;
                try_complete(*record, now);
                break;
            case wire::RosterAckState::kFormed:
                break;
        }
        return;
    }
}

// J-44
void RosterPublisher::shorten(JobRecord& record, Nanos now) {
    Publisher& publisher = *record.publisher;
    const auto lost = std::ranges::find(publisher.engines, false, &RosterEngine::acknowledged);
    ULC_CHECK(lost != publisher.engines.end());
    ranks_.shortened(record, lost->mac);
    record.mtu = node_.config().mtu_sure;
    publisher.roster = ++last_roster_;
    ULC_CHECK(cut_parts(record));  // into the same parts
    start_rounds(record, PublisherStage::kRoster, publisher.parts, now);
}

}  // namespace ulc::jobs
