// SPDX-License-Identifier: BSD-3-Clause
// Two engines with one MAC address (jobs/jobs.h): a job in which one of them has a rank fails at
// once, and names both by their incarnations. Each hears the claims of the other, and the publisher
// those of both.
#include <algorithm>
#include <array>
#include <cstdio>
#include <tuple>

#include "jobs/job_records.h"
#include "wire/mac_text.h"

namespace ulc::jobs {

/// One claim may be an old frame of this node that a loop returned. A second one of the same
/// incarnation is not: the other engine repeats its claims, as this one does. It may hear this one
/// first, and stop: then it says REJECT.
// J-42
void Jobs::Impl::on_twin(const wire::JobBodyView& view, Nanos now) {
    const bool claims = view.kind == wire::JobKind::kJoin && !view.introduces &&
                        view.join->incarnation != config.incarnation;
    const bool rejects_twin = view.kind == wire::JobKind::kReject &&
                              view.reject->scope == wire::RejectScope::kJob &&
                              view.reject->first == config.mac && view.reject->second == config.mac;
    if ((!claims && !rejects_twin) || !authentic(view, config.mac)) return;
    const std::span<JobRecord* const> there = records_of(view);
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
            fail_job(*record, Err::kRankTaken, rank, config.mac, config.mac, now);
            if (claims) announce_failure(*record);
        }
    }
    settle(there, now);
}

bool Jobs::Impl::has_twins(JobRecord& record, Nanos now) {
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
        fail_job(record, Err::kRankTaken, rank, Mac{other.mac}, Mac{other.mac}, now);
        announce_failure(record);
    } else if (now - since > config.claim_life) {
        drop_claims(record, Mac{one.mac}, one.heard > since ? other.handle : one.handle);
        publisher.twins_since = kNever;
    }
    return true;
}

std::string Jobs::Impl::twins_text(const JobRecord& record, const Mac& mac) const {
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
