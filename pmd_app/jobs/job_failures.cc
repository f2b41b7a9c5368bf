// SPDX-License-Identifier: BSD-3-Clause
// Ends of claims, with texts for users: jobs that fail before they form, and deadlines
// (job_ranks.h).
#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "jobs/job_ranks.h"
#include "wire/mac_text.h"

namespace ulc::jobs {
namespace {

std::string_view reason_of(Err error) noexcept {
    switch (error) {
        case Err::kJobSize:
            return "gave different job sizes";
        case Err::kTwoRosters:
            return "both claim rank 0 of this job name";
        case Err::kVersion:
            return "speak no common protocol version";
        case Err::kProfile:
            return "use different transport profiles";
        case Err::kLimit:
            return "have a job whose roster needs too many frames; raise the MTU of all nodes";
        default:
            return "both claim the rank";
    }
}

/// Returns "3, 5-7": the unset ones of 0 … size-1, cut short.
template <typename IsSet>
std::string ranks_missing(std::uint32_t size, IsSet is_set) {
    std::string text;
    for (std::uint32_t rank = 0; rank < size; ++rank) {
        if (is_set(rank)) continue;
        if (text.size() > 60) return text + ", …";
        if (!text.empty()) text += ", ";
        text += std::to_string(rank);
        std::uint32_t last = rank;
        while (last + 1 < size && !is_set(last + 1))
            ++last;
        if (last > rank) text += "-" + std::to_string(last);
        rank = last;
    }
    return text;
}

std::string rank0_ended_text(const JobRecord& record) {
    return "rank 0 at " + text_of(record.rank0) + " ended before all ranks knew each other";
}

}  // namespace

void JobRanks::fail_job(JobRecord& record, Err error, Rank rank, const Mac& first,
                        const Mac& second, Nanos now) {
    const std::string why = first == second ? twins_text(record, first)
                                            : "rank " + std::to_string(rank) + ": nodes " +
                                                  text_of(first) + " and " + text_of(second) + " " +
                                                  std::string(reason_of(error));
    fail_with(record, error, why, first, second);
    record.conflict_rank = rank;
    record.failed_at = record.publisher ? now : now - node_.config().failed_life;
}

void JobRanks::fail_with(JobRecord& record, Err error, const std::string& why, const Mac& first,
                         const Mac& second) {
    for (const LocalRank& local : record.locals)
        fail_local(record, local, error, first, second, why);
    while (!record.locals.empty())
        table_.remove_local(record, record.locals.size() - 1);
    record.join_at = kNever;
    record.join_due = false;
    if (record.publisher && record.publisher->stage == PublisherStage::kRoster) {
        record.retract_roster();
    }
    table_.drop_assembly(record);
    record.phase = JobPhase::kFailed;
    record.error = error;
    record.first = first;
    record.second = second;
}

void JobRanks::publisher_gone(JobRecord& record, Err error) {
    record.rank0 = record.assembly->publisher;
    record.rank0_ended = true;
    if (record.by_hand) return table_.drop_assembly(record);
    fail_with(record, error, rank0_ended_text(record), record.rank0, node_.config().mac);
}

void JobRanks::fail_local(JobRecord& record, const LocalRank& local, Err error, const Mac& first,
                          const Mac& second, const std::string& why) {
    JobEvent event;
    event.kind = JobEventKind::kFailed;
    event.job = record.id;
    event.endpoint = local.endpoint;
    event.rank = local.rank;
    event.error = error;
    event.first = first;
    event.second = second;
    event.text = why;
    events_.push_back(std::move(event));
    liveness_.ended(local.endpoint, wire::LeaveReason::kDied);
}

void JobRanks::check_deadlines(JobRecord& record, Nanos now) {
    const JobsConfig& config = node_.config();
    std::string why;
    for (std::size_t i = 0; i < record.locals.size();) {
        const LocalRank local = record.locals[i];
        if (local.deadline > now) {
            ++i;
            continue;
        }
        if (why.empty() && record.twin != 0) {
            why = twins_text(record, config.mac);
        } else if (why.empty() && record.publisher) {
            why = "still missing of " + std::to_string(record.size) +
                  " ranks: " + ranks_missing(record.size, [&](std::uint32_t rank) {
                      return record.publisher->claims[rank].handle != 0 ||
                             record.local(static_cast<Rank>(rank)) != nullptr;
                  });
        } else if (why.empty() && record.rank0_ended) {
            why = rank0_ended_text(record);
        } else if (why.empty() && record.rank0 != Mac{}) {
            why = "rank 0 at " + text_of(record.rank0) + " is still waiting for other ranks";
        } else if (why.empty()) {
            why = "rank 0 was not heard on this network";
        }
        fail_local(record, local, Err::kTimeout, config.mac, record.rank0, why);
        record.byes.push_back(Bye{local.rank, local.endpoint, wire::LeaveReason::kDied, config.byes,
                                  now, config.bye_wait});
        table_.remove_local(record, i);
        if (local.rank == 0) record.stop_publishing();
    }
}

std::string JobRanks::twins_text(const JobRecord& record, const Mac& mac) const {
    const JobsConfig& config = node_.config();
    std::uint32_t one = mac == config.mac ? config.incarnation : 0;
    std::uint32_t other = mac == config.mac ? record.twin : 0;
    if (record.publisher) {
        for (const RemoteClaim& claim : record.publisher->claims) {
            if (claim.handle == 0 || claim.mac != mac || claim.incarnation == one) continue;
            (one == 0 ? one : other) = claim.incarnation;
        }
    }
    std::string text = "two engines use MAC " + text_of(mac);
    if (one != 0 && other != 0 && one != other) {
        std::array<char, 48> lives{};
        (void)std::snprintf(lives.data(), lives.size(), ", incarnations %08x and %08x", one, other);
        text += lives.data();
    }
    return text + (mac == config.mac ? ": this one and another" : "") +
           "; give one of them another MAC";
}

}  // namespace ulc::jobs
