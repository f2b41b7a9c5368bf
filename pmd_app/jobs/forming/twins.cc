// SPDX-License-Identifier: BSD-3-Clause
// Two engines with one MAC address (claims.h).
#include <algorithm>
#include <tuple>
#include <vector>

#include "jobs/forming/claims.h"
#include "jobs/forming/roster_publisher.h"

namespace ulc::jobs {

/// One claim may be an old frame of this node that a loop returned. A second one of the same
/// incarnation is not: the other engine repeats its claims, as this one does. It may hear this one
/// first, and stop: then it says REJECT.
// J-42
std::span<JobRecord* const> Claims::on_twin(const wire::JobBodyView& view, Nanos now) {
    const JobsConfig& config = node_.config();
    const bool claims = view.kind == wire::JobKind::kJoin && !view.introduces &&
                        view.join->incarnation != config.incarnation;
    const bool rejects_twin = view.kind == wire::JobKind::kReject &&
                              view.reject->scope == wire::RejectScope::kJob &&
                              view.reject->first == config.mac && view.reject->second == config.mac;
    if ((!claims && !rejects_twin) || !table_.is_authentic(view, config.mac)) return {};
    const std::span<JobRecord* const> there = table_.records_of(view);
    for (JobRecord* record : there) {
        if (record->phase != JobPhase::kForming || !same_key(*record, view)) continue;
        if (claims && record->twin != view.join->incarnation) {
            record->twin = view.join->incarnation;
            record->twin_heard = now;
            continue;
        }
        if (rejects_twin && record->twin == 0) record->twin = view.reject->handle;
        if (rejects_twin || now - record->twin_heard >= config.join_wait_min) {
            const Rank rank = record->locals.empty() ? Rank{0} : record->locals.front().rank;
            ranks_.fail_job(*record, Err::kRankTaken, rank, config.mac, config.mac, now);
            if (claims) rejects_.announce_failure(*record);
        }
    }
    return there;
}

bool RosterPublisher::has_twins(JobRecord& record, Nanos now) {
    Publisher& publisher = *record.publisher;
    std::vector<const RemoteClaim*> claims;
    for (const RemoteClaim& claim : publisher.claims) {
        if (claim.handle != 0) claims.push_back(&claim);
    }
    std::sort(claims.begin(), claims.end(), [](const RemoteClaim* a, const RemoteClaim* b) {
        return std::tie(a->mac, a->incarnation) < std::tie(b->mac, b->incarnation);
    });
    const auto twins = std::adjacent_find(
        claims.begin(), claims.end(), [](const RemoteClaim* a, const RemoteClaim* b) {
            return a->mac == b->mac && a->incarnation != b->incarnation;
        });
    if (twins == claims.end()) {
        publisher.twins_since = kNever;
        return false;
    }
    if (publisher.twins_since == kNever) publisher.twins_since = now;
    const RemoteClaim& one = **twins;
    const RemoteClaim& other = **(twins + 1);
    const Nanos since = publisher.twins_since;
    if (one.heard > since && other.heard > since) {
        const auto rank = static_cast<Rank>(&other - publisher.claims.data());
        ranks_.fail_job(record, Err::kRankTaken, rank, Mac{other.mac}, Mac{other.mac}, now);
        rejects_.announce_failure(record);
    } else if (now - since > node_.config().claim_life) {
        record.drop_claims(Mac{one.mac}, one.heard > since ? other.handle : one.handle);
        publisher.twins_since = kNever;
    }
    return true;
}

}  // namespace ulc::jobs
