// SPDX-License-Identifier: BSD-3-Clause
// State of job_records.h and jobs.h.
#include <algorithm>

#include "base/state/containers.h"
#include "jobs/job_records.h"
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

void Jobs::Impl::fields(state::Archive& archive) {
    ULC_STATE(
        archive, Jobs::Impl, 3,
        (tokens, records, hurry_full_at, events, rejects, commit_answers, commit_limit, ended_jobs,
         ended_next, last_id, last_roster, timer, rejects_left, tx_hint),
        (config, attributes, counters, liveness, addresses, links, index, gone_hint, visited));
    archive.values(config.incarnation, attributes.mtu, attributes.links);
    if (archive.exporting()) return;
    archive.require(attributes.mtu >= wire::kMtuMin && attributes.mtu <= config.mtu &&
                        attributes.links >= 1 && attributes.links <= kNodeLinksMax,
                    "the attributes of this node are malformed");
    links.set_attributes(attributes);
    const bool holds =
        records.size() <= config.jobs_max && ended_jobs.size() <= kEndedJobsMax &&
        ended_next < kEndedJobsMax && ended_next <= ended_jobs.size() &&
        std::ranges::all_of(records, [](const auto& record) { return record != nullptr; });
    archive.require(holds, "the records of jobs are too many");
    records.reserve(config.jobs_max);
    if (!archive.ok()) return;
    for (const auto& record : records)
        index.add(*record);
    for (std::size_t place = 0; place < ended_jobs.size(); ++place)
        index.add_ended(ended_jobs[place].id, static_cast<std::uint32_t>(place));
    gone_hint = with_gone() != nullptr;
}

void Jobs::fields(state::Archive& archive) {
    ULC_STATE(archive, Jobs, 1, (liveness_, links_, addresses_, next_look_), (impl_));
    archive.values(*impl_);
}

}  // namespace ulc::jobs
