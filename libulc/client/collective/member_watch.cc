// SPDX-License-Identifier: BSD-3-Clause
#include "client/collective/member_watch.h"

#include <algorithm>

#include "client/endpoint.h"
#include "client/ulc_internal.h"

namespace ulc::client {
namespace {

/// Members that are looked at in one test() that nothing moved.
constexpr unsigned kLooksPerTest = 16;

/// The longest time between inquiries, in patiences.
constexpr Nanos kAskEveryMax = 8;

/// The bits of a tag that hold the number.
constexpr std::uint64_t kNumberMask = ((std::uint64_t{1} << Operations::kNumberBits) - 1)
                                      << Signature::kBits;

/// True if the member sent a message to the operation before that no step here asked for. That one
/// is over here, so none will. Only the first message to the group counts: numbers begin again, and
/// the member may be far ahead.
bool left_over(const RunPlace& place, std::uint16_t rank) noexcept {
    if (!place.ep->groups().find(place.group)->operations.ended_before(place.number)) return false;
    std::uint64_t found = 0;
    return place.checks() &&
           place.ep->messages().peek(rank, place.tag, ~(kNumberMask | Signature::kMask), &found) ==
               ULC_OK &&
           ((found ^ operation_tag(place.group, place.number - 1)) & kNumberMask) == 0 &&
           Signature::of_tag(found).bits() != 0;
}

}  // namespace

std::uint64_t operation_tag(ulc_group group, std::uint32_t number) noexcept {
    constexpr std::uint64_t kHandle = (std::uint64_t{1} << 31) - 1;
    static_assert(31 + Operations::kNumberBits + Signature::kBits == 62);
    return ULC_TAG_COLL | (group & kHandle) << (Operations::kNumberBits + Signature::kBits) |
           ((std::uint64_t{number} << Signature::kBits) & kNumberMask);
}

/// A member that died will never send, or never let another member send. One that left may have
/// done its part, and a receive that names it fails by itself. One with other arguments may have
/// sent messages that no step asks for, and wait for messages that no member sends.
MemberWatch::Finding MemberWatch::look(const RunPlace& place) noexcept {
    const Group* group = place.ep->groups().find(place.group);
    if (group != nullptr && group->operations.disagreement.what != nullptr &&
        group->operations.disagreement.number == place.number)
        return {ULC_ERR_MISMATCH, group->operations.disagreement.rank,
                group->operations.disagreement.what};
    // A reserved signature in any operation of the group: none after that one can go well.
    const std::uint64_t broken = (place.tag & ~Signature::kMask) | Signature::broken().bits();
    for (unsigned looks = 0; looks < kLooksPerTest && looks < place.members; ++looks) {
        const std::uint16_t rank = place.rank_of(looked_at_);
        looked_at_ =
            static_cast<std::uint16_t>(looked_at_ + 1 < place.members ? looked_at_ + 1 : 0);
        if (rank == ULC_RANK_ANY) return {ULC_ERR_INVALID};
        if (rank == ulc_rank(place.ep)) continue;
        if (ulc_peer_state(place.ep, rank) == ULC_ERR_PEER_DIED) return {ULC_ERR_PEER_DIED, rank};
        std::uint64_t found = 0;
        if (place.ep->messages().peek(rank, broken, ~kNumberMask, &found) != ULC_OK &&
            place.ep->messages().peek(rank, place.tag, ~Signature::kMask, &found) != ULC_OK) {
            if (left_over(place, rank))
                return {ULC_ERR_MISMATCH, rank,
                        "gave another root, operation or algorithm in the one before"};
            continue;
        }
        const char* unlike = place.identity.agreement.signature.unlike(Signature::of_tag(found));
        if (unlike != nullptr) return {ULC_ERR_MISMATCH, rank, unlike};
    }
    return {};
}

/// The time is not looked at before the second test in which nothing moved.
void MemberWatch::ask(const RunPlace& place, const abi::Schedule& schedule,
                      std::span<const std::uint32_t> awaited, bool all) noexcept {
    const Nanos patience = place.ep->collectives().patience;
    if (patience == kNever || ++quiet_ == 1) return;
    const Nanos now = place.ep->hooks().now(place.ep->hooks().context);
    if (quiet_ == 2) {
        ask_again_after_ = patience;
        ask_at_ = now + patience;
        asked_ = 0;
    }
    if (now < ask_at_ || !ask_sources(place, schedule, awaited, all)) return;
    asked_ = 0;
    ask_again_after_ = std::min(2 * ask_again_after_, kAskEveryMax * patience);
    ask_at_ = now + ask_again_after_;
}

/// False: no space for all questions; to be called again. all: the engine has the schedule, and
/// which messages it awaits is not known here.
bool MemberWatch::ask_sources(const RunPlace& place, const abi::Schedule& schedule,
                              std::span<const std::uint32_t> awaited, bool all) noexcept {
    const auto count = all ? schedule.step_count : static_cast<std::uint32_t>(awaited.size());
    for (std::uint16_t last = ULC_RANK_ANY; asked_ < count; ++asked_) {
        const abi::Step& step = schedule.steps[all ? asked_ : awaited[asked_]];
        const std::uint16_t rank = place.rank_of(step.peer);
        if (step.kind != abi::StepKind::kRecv || rank == last || rank == ULC_RANK_ANY) continue;
        if (!place.ep->groups().ask(rank, place.group, place.number, place.identity.agreement))
            return false;
        last = rank;
    }
    return true;
}

bool MemberWatch::somebody_died(const RunPlace& place) noexcept {
    for (std::uint16_t index = 0; index < place.members; ++index) {
        const std::uint16_t rank = place.rank_of(index);
        if (rank != ULC_RANK_ANY && ulc_peer_state(place.ep, rank) == ULC_ERR_PEER_DIED)
            return true;
    }
    return false;
}

bool MemberWatch::tell_all(const RunPlace& place) noexcept {
    if (told_ || place.members < 2 || !place.checks()) return true;
    const std::uint64_t tag = (place.tag & ~Signature::kMask) | Signature::broken().bits();
    told_ = place.ep->messages().multicast(place.group, ULC_SUBSET_ALL, tag,
                                           Pieces::one(nullptr, 0), 0, nullptr) != ULC_ERR_AGAIN;
    return told_;
}

}  // namespace ulc::client
