// SPDX-License-Identifier: BSD-3-Clause
// State of job_records.h, of jobs.h, and of its parts.
#include <algorithm>

#include "base/state/containers.h"
#include "jobs/job_records.h"
#include "jobs/jobs_impl.h"
#include "wire/state/ids.h"

namespace ulc::jobs {

constexpr JobPhase last_value(JobPhase) { return JobPhase::kFailed; }
constexpr PublisherStage last_value(PublisherStage) { return PublisherStage::kCommit; }
constexpr JobEventKind last_value(JobEventKind) { return JobEventKind::kShortened; }

namespace {

/// The lists of a record fit its size, so that each rank below it may be an index.
bool fits(const Publisher& publisher, std::uint16_t size) {
    return (publisher.claims.empty() || publisher.claims.size() == size) &&
           publisher.claimed <= publisher.claims.size() &&
           publisher.waiting <= publisher.engines.size() &&
           publisher.due.size() == publisher.missing.size() &&
           (publisher.stage != PublisherStage::kRoster ||
            (publisher.claims.size() == size && publisher.leads.size() == size &&
             publisher.part_first.size() == publisher.parts + 1U &&
             publisher.part_first.front() == 0 && publisher.part_first.back() == size &&
             std::ranges::is_sorted(publisher.part_first))) &&
           (publisher.stage == PublisherStage::kCollecting ||
            publisher.due.size() == publisher.parts + (publisher.pads ? 1U : 0U));
}

bool fits(const Assembly& assembly, std::uint16_t size) {
    return (assembly.peers.empty() || assembly.peers.size() == size) &&
           (assembly.held.empty() || assembly.held.size() == assembly.parts);
}

bool fits(const JobRecord& record) {
    const auto below = [&](Rank rank) { return rank < record.size; };
    const bool formed = record.phase == JobPhase::kFormed || record.phase == JobPhase::kEnding;
    if (formed && (record.roster.size() != record.size || record.gone.size() != record.size))
        return false;
    if (record.publisher && !fits(*record.publisher, record.size)) return false;
    if (record.assembly && !fits(*record.assembly, record.size)) return false;
    return record.size > 0 && !record.name.empty() && record.name.size() <= wire::kJobNameOctets &&
           record.profile.size() <= wire::kProfileOctets &&
           static_cast<std::uint8_t>(record.medium) < kMedia && record.mtu >= wire::kMtuMin &&
           (record.roster.empty() || record.roster.size() == record.size) &&
           record.gone.size() >= record.roster.size() * (formed ? 1 : 0) &&
           record.rank0_next < kRank0Max && record.gone_reported <= record.gone_events.size() &&
           std::ranges::all_of(record.by_mac, below) &&
           std::ranges::all_of(record.excluded, below) &&
           std::ranges::all_of(record.locals, below, &LocalRank::rank) &&
           std::ranges::all_of(record.byes, below, &Bye::rank) &&
           std::ranges::all_of(record.gone_events, below, &std::pair<Rank, JobEventKind>::first);
}

}  // namespace

void LocalRank::fields(state::Archive& archive) {
    ULC_STATE(archive, LocalRank, 1, (rank, endpoint, deadline), ());
}

void RemoteClaim::fields(state::Archive& archive) {
    ULC_STATE(archive, RemoteClaim, 2, (mac, handle, incarnation, heard, attributes), ());
    wire::NodeAttributes its;
    archive.require(attributes.size() <= wire::kAttributeOctetsMax &&
                        wire::parse_attributes(std::as_bytes(std::span(attributes)), its),
                    "the attributes of a node are malformed");
}

void RosterEngine::fields(state::Archive& archive) {
    ULC_STATE(archive, RosterEngine, 2, (mac, acknowledged, reported, holds), ());
}

void Publisher::fields(state::Archive& archive) {
    ULC_STATE(archive, Publisher, 3,
              (stage, claims, claimed, rank0, version_min, version_max, twins_since, culprits,
               roster, salt, parts, part_first, leads, pads, padded_rounds, engines, waiting, due,
               due_count, missing, round_at, proofs_until, wait),
              ());
    archive.require(
        due_count == static_cast<std::size_t>(std::ranges::count(due, true)) || due_count == 0,
        "parts of a roster are miscounted");
}

void Assembly::fields(state::Archive& archive) {
    ULC_STATE(archive, Assembly, 5,
              (publisher, nonce, roster, parts, filled, heard, complete, refused, watched, world,
               first_seq, version, medium, mtu, has_bonds, patience, padding, ours, peers, bonded,
               proofs_until, held, ack_at, ack_due, padded_ack_due),
              ());
}

void Bye::fields(state::Archive& archive) {
    ULC_STATE(archive, Bye, 1, (rank, handle, reason, left, at, wait), ());
}

void Exclusion::fields(state::Archive& archive) {
    ULC_STATE(archive, Exclusion, 1, (endpoint, by), ());
}

void JobRecord::fields(state::Archive& archive) {
    ULC_STATE(
        archive, JobRecord, 4,
        (id, user, name, nonce, by_hand, secret, key, size, profile, patience, phase, locals, byes,
         publisher, assembly, begins_at, join_at, join_wait, join_due, join_cursor, join_old, rank0,
         rank0_ended, rank0_heard, rank0_next, twin, twin_heard, early_joins, roster, by_mac, gone,
         excluded, excluded_by, gone_events, gone_reported, world, first_seq, version, medium, mtu,
         has_bonds, error, conflict_rank, first, second, failed_at),
        ());
    if (archive.ok()) archive.require(fits(*this), "the record of a job does not fit its size");
}

void PendingReject::fields(state::Archive& archive) {
    ULC_STATE(archive, PendingReject, 1, (to, job, body, introduced, old), ());
}

void EndedJob::fields(state::Archive& archive) { ULC_STATE(archive, EndedJob, 1, (id, key), ()); }

void CommitAnswer::fields(state::Archive& archive) {
    ULC_STATE(archive, CommitAnswer, 1, (to, name, nonce, by_hand, roster, key), ());
    archive.require(name.size() <= wire::kJobNameOctets, "the name of a job is too long");
}

void JobEvent::fields(state::Archive& archive) {
    ULC_STATE(archive, JobEvent, 3, (kind, job, endpoint, rank, error, first, second, text), ());
}

void OwnNode::fields(state::Archive& archive) {
    ULC_STATE(archive, OwnNode, 1, (tokens_), (config_, attributes_));
    archive.values(config_.incarnation, attributes_.mtu, attributes_.links);
    archive.require(attributes_.mtu >= wire::kMtuMin && attributes_.mtu <= config_.mtu &&
                        attributes_.links >= 1 && attributes_.links <= kNodeLinksMax,
                    "the attributes of this node are malformed");
}

void Rejects::fields(state::Archive& archive) {
    ULC_STATE(archive, Rejects, 1, (queue_, left_), (node_));
    const bool of_jobs = std::all_of(queue_.begin(), queue_.end(), [](const PendingReject& reject) {
        return reject.job != kNoJob;
    });
    archive.require(of_jobs && left_ <= kPerJoin, "the rejections of claims are malformed");
}

void JobTable::fields(state::Archive& archive) {
    ULC_STATE(archive, JobTable, 1, (records_, ended_jobs_, ended_next_, last_id_),
              (node_, rejects_, liveness_, counters_, index_, visited_));
    if (archive.exporting()) return;
    const bool holds =
        records_.size() <= node_.config().jobs_max && ended_jobs_.size() <= kEndedJobsMax &&
        ended_next_ < kEndedJobsMax && ended_next_ <= ended_jobs_.size() &&
        std::ranges::all_of(records_, [](const auto& record) { return record != nullptr; });
    archive.require(holds, "the records of jobs are too many");
    records_.reserve(node_.config().jobs_max);
    if (!archive.ok()) return;
    for (const auto& record : records_)
        index_.add(*record);
    for (std::size_t place = 0; place < ended_jobs_.size(); ++place)
        index_.add_ended(ended_jobs_[place].id, static_cast<std::uint32_t>(place));
}

void JobRanks::fields(state::Archive& archive) {
    ULC_STATE(archive, JobRanks, 1, (events_), (node_, table_, liveness_, counters_));
}

void RosterPublisher::fields(state::Archive& archive) {
    ULC_STATE(archive, RosterPublisher, 1, (last_roster_),
              (node_, table_, ranks_, rejects_, addresses_));
}

void RosterReceiver::fields(state::Archive& archive) {
    ULC_STATE(archive, RosterReceiver, 1, (commit_answers_, commit_limit_),
              (node_, table_, ranks_, rejects_, addresses_, liveness_, counters_));
}

void Claims::fields(state::Archive& archive) {
    ULC_STATE(archive, Claims, 1, (hurry_full_at_),
              (node_, table_, ranks_, rejects_, publisher_, liveness_, counters_));
}

void Jobs::Impl::fields(state::Archive& archive) {
    ULC_STATE(archive, Jobs::Impl, 4,
              (node, rejects, table, ranks, publisher, receiver, claims, timer, tx_hint),
              (counters, liveness, links, verdicts, gone_hint));
    if (archive.exporting()) return;
    links.set_attributes(node.attributes());
    gone_hint = table.with_unreported() != nullptr;
}

void Jobs::fields(state::Archive& archive) {
    ULC_STATE(archive, Jobs, 1, (liveness_, links_, addresses_, next_look_), (impl_));
    archive.values(*impl_);
}

}  // namespace ulc::jobs
