// SPDX-License-Identifier: BSD-3-Clause
#include "urtp/sender/holders.h"

#include <algorithm>

#include "urtp/session.h"

namespace ulc::urtp {

namespace {

/// A member that holds a stream up for one part of the time in kLeak + 1 keeps its level.
constexpr Nanos kLeak = 9;
/// A packet without answer for this part of the limit is the member's doing, not the wire's.
constexpr Nanos kUnansweredPart = 4;
/// Quarters of all requests that are nearly all.
constexpr std::uint32_t kNearlyAll = 3;

/// The greatest of the destinations' numbers.
struct Foremost {
    Seq next;
    Seq edge;
};

Foremost foremost(const TxStream& tx) noexcept {
    Foremost most{tx.base, tx.base};
    for (std::uint32_t at = 0; at < tx.members; ++at) {
        if (!tx.is_destination(at)) continue;
        if (most.next.before(tx.next[at])) most.next = tx.next[at];
        if (most.edge.before(tx.edge[at])) most.edge = tx.edge[at];
    }
    return most;
}

/// Returns whether the next packet waits for this member. A full window alone says nothing: where
/// our wire is the bottleneck, it is always full. So the member must be behind the foremost by more
/// than acknowledgements differ anyway, or have left a packet unanswered for long, or have all that
/// its credit allows.
bool leaves_no_room(const TxStream& tx, std::uint32_t at, const Foremost& most,
                    Nanos sent_before) noexcept {
    const auto slack = static_cast<std::int32_t>(2 * tx.group->ack_modulus);
    const Seq next = tx.next[at];
    const Seq edge = tx.edge[at];
    const bool by_credit = !tx.tail.before(edge);
    if (!by_credit && tx.tail.in_window(next, tx.cwnd)) return false;
    if (next.before(tx.sent) && tx.slot(next).sent_at < sent_before) return true;
    if (by_credit) return next == tx.sent || most.edge - edge > slack;
    return most.next - next > slack;
}

}  // namespace

Holders::Holders(std::uint16_t members) : members_(std::make_unique<Member[]>(members)) {}

void Holders::sample(const TxStream& tx, Nanos now, Nanos limit) noexcept {
    const bool waits = tx.wants_credit || waited_at_ > sampled_at_;
    // A pause of this process is not the members' doing.
    const Nanos passed = std::min(now - sampled_at_, 2 * period(limit));
    const Foremost most = foremost(tx);
    const Nanos sent_before = now - limit / kUnansweredPart;
    bool more = waits;
    for (std::uint32_t at = 0; at < tx.members; ++at) {
        Member& member = members_[at];
        // Without space in window or credit, those that leave none hold the stream up. Else the
        // pacer does, or frames are short: then those that lose nearly all of what is lost, or that
        // lag by half of the window.
        const bool lags = most.next - tx.next[at] > static_cast<std::int32_t>(tx.window / 2);
        const bool loses = requests_ > 0 && 4 * member.requests >= kNearlyAll * requests_;
        const bool holds =
            tx.has_room() ? lags || loses : leaves_no_room(tx, at, most, sent_before);
        member.holds = waits && tx.is_destination(at) && holds;
        const Nanos less = std::max<Nanos>(0, member.level - passed / kLeak);
        member.level = member.holds ? member.level + passed : less;
        member.requests = 0;
        more |= member.level > 0;
    }
    requests_ = 0;
    sampled_at_ = now;
    sample_at_ = more && limit != kNever ? now + period(limit) : kNever;
}

std::uint32_t Holders::next_named(const TxStream& tx, Nanos limit) noexcept {
    for (std::uint32_t at = 0; at < tx.members; ++at) {
        if (members_[at].level < limit || !tx.is_destination(at)) continue;
        members_[at].level = 0;
        return at;
    }
    return kNoHolder;
}

bool Holders::others_wait(const TxStream& tx) const noexcept {
    for (std::uint32_t at = 0; at < tx.members; ++at)
        if (tx.is_destination(at) && !members_[at].holds) return true;
    return false;
}

bool may_exclude(const HoldRules& rules, const TxStream& tx, std::uint32_t at) noexcept {
    const Rank rank = tx.rank[at];
    const bool kept = rank < rules.keeps.size() && rules.keeps[rank];
    return rules.excludes && !kept && tx.group->holders->others_wait(tx);
}

}  // namespace ulc::urtp
