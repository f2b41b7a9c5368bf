// SPDX-License-Identifier: BSD-3-Clause
#include "jobs/forming/rejects.h"

#include <algorithm>

#include "base/check.h"
#include "jobs/job_table.h"

namespace ulc::jobs {

void Rejects::reject_claim(const JobRecord& record, const Mac& to, const wire::JoinClaim& claim,
                           Err error, const Mac& first) {
    if (left_ == 0) return;  // the claim comes again
    --left_;
    PendingReject reject{to, record.id, {}};
    reject.body.error = static_cast<std::uint32_t>(error);
    reject.body.scope = wire::RejectScope::kClaim;
    reject.body.rank = claim.rank;
    reject.body.handle = claim.handle;
    reject.body.first = first;
    reject.body.second = to;
    (void)queue_.push_back(reject);  // full: the claim comes again
}

void Rejects::reject_old(const JobRecord& record, const Mac& to, const wire::JoinClaim& claim) {
    PendingReject reject{to, record.id, {}};
    reject.old = true;
    reject.body.error = static_cast<std::uint32_t>(Err::kVersion);
    reject.body.scope = wire::RejectScope::kClaim;
    reject.body.rank = claim.rank;
    reject.body.handle = claim.handle;
    reject.body.first = node_.config().mac;
    reject.body.second = to;
    (void)queue_.push_back(reject);  // full: the claim comes again
}

void Rejects::reject_publisher(const JobRecord& record, const Mac& publisher, const Mac& other) {
    PendingReject reject{publisher, record.id, {}};
    reject.body.error = static_cast<std::uint32_t>(Err::kTwoRosters);
    reject.body.scope = wire::RejectScope::kJob;
    reject.body.rank = 0;
    reject.body.first = other;
    reject.body.second = publisher;
    (void)queue_.push_back(reject);  // full: the roster comes again
}

void Rejects::announce_failure(const JobRecord& record) {
    const JobsConfig& config = node_.config();
    PendingReject reject{kBroadcastMac, record.id, {}};
    reject.body.error = static_cast<std::uint32_t>(record.error);
    reject.body.scope = wire::RejectScope::kJob;
    reject.body.rank = record.conflict_rank;
    reject.body.first = record.first;
    reject.body.second = record.second;
    if (record.first == config.mac && record.second == config.mac)
        reject.body.handle =
            config.incarnation;      // a twin may not have heard a claim of this engine
    (void)queue_.push_back(reject);  // full: each claimant is notified when it claims again
}

bool Rejects::has(JobId job) const noexcept {
    return std::any_of(queue_.begin(), queue_.end(),
                       [job](const PendingReject& reject) { return reject.job == job; });
}

std::size_t Rejects::put(std::byte* body, Mac& to, const JobTable& table) {
    while (!queue_.empty()) {
        const PendingReject& reject = queue_[queue_.size() - 1];
        const JobRecord* record = table.find(reject.job);
        to = reject.to;
        if (record != nullptr && !reject.introduced && !reject.old && record->publisher &&
            record->phase != JobPhase::kForming) {
            for (PendingReject& other : queue_) {
                if (other.job == reject.job && other.to == to) other.introduced = true;
            }
            return node_.put_introduction(*record, body);
        }
        const PendingReject sent = reject;
        queue_.pop_back();
        if (record == nullptr) continue;
        const wire::Nonce& nonce = sent.old ? record->secret : record->nonce;
        const std::size_t octets = wire::put_reject(
            body, wire::job_head(wire::JobKind::kReject, record->name, nonce, record->by_hand),
            sent.body);
        return node_.tagged(record->by_hand || sent.old, record->key, body, octets);
    }
    return 0;
}

void Rejects::check_invariants() const {
    ULC_CHECK(left_ <= kPerJoin);
    for (const PendingReject& reject : queue_)
        ULC_CHECK(reject.job != kNoJob);
}

}  // namespace ulc::jobs
