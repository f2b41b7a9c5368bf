// SPDX-License-Identifier: BSD-3-Clause
#include "endpoint/reports.h"

#include <algorithm>

#include "base/check.h"

namespace ulc::endpoint {

using abi::CompletionKind;

namespace {

bool is_end(const Report& report) noexcept {
    return report.kind == CompletionKind::kPeerLeft || report.kind == CompletionKind::kPeerDied;
}

/// Returns what two reports have in common if one of them is there at most; 0: any number may be.
std::uint64_t key_of(const Report& report) noexcept {
    const bool is_fault = report.kind == CompletionKind::kFault;
    const bool alone =
        report.kind == CompletionKind::kJobFormed || report.kind == CompletionKind::kJobFailed ||
        report.kind == CompletionKind::kLinksOpen || report.kind == CompletionKind::kLeft;
    if (!is_fault && !is_end(report) && !alone) return 0;
    const CompletionKind kind = is_end(report) ? CompletionKind::kPeerDied : report.kind;
    const std::uint64_t status = is_fault ? static_cast<std::uint16_t>(report.status) : 0U;
    return std::uint64_t{static_cast<std::uint8_t>(kind)} << 32 | status << 16 |
           (alone ? 0U : report.rank);
}

}  // namespace

Reports::Stage Reports::stage_of(CompletionKind kind) noexcept {
    switch (kind) {
        case CompletionKind::kJobFormed:
        case CompletionKind::kJobFailed:
            return Stage::kJob;
        case CompletionKind::kLinksOpen:
        case CompletionKind::kLinked:
        case CompletionKind::kLinkDone:
        case CompletionKind::kUnlinked:
            return Stage::kLinks;
        case CompletionKind::kFault:
            return Stage::kFaults;
        case CompletionKind::kPeerLeft:
        case CompletionKind::kPeerDied:
            return Stage::kPeers;
        case CompletionKind::kLeft:
            return Stage::kLeft;
        case CompletionKind::kMessage:
        case CompletionKind::kGroupReady:
        case CompletionKind::kGroupFailed:
        case CompletionKind::kGroupListens:
        case CompletionKind::kOffloadDone:
        case CompletionKind::kNear:
            break;
    }
    return Stage::kNone;
}

void Reports::add(const Report& report) {
    ULC_CHECK(stage_of(report.kind) != Stage::kNone);
    // The ends of peers may be many, and a peer ends once.
    const std::uint64_t key = is_end(report) ? 0 : key_of(report);
    const auto known = key == 0 ? queue_.end() : std::ranges::find(queue_, key, key_of);
    if (known != queue_.end()) {
        const std::uint64_t before = known->kind == CompletionKind::kFault ? known->tag : 0;
        *known = report;
        known->tag += before;
        return;
    }
    const Stage stage = stage_of(report.kind);
    const auto of = [](const Report& r) { return stage_of(r.kind); };
    queue_.insert(stage == Stage::kFaults ? std::ranges::lower_bound(queue_, stage, {}, of)
                                          : std::ranges::upper_bound(queue_, stage, {}, of),
                  report);
}

void Reports::add_failure(Err error, std::string_view text) {
    failure_ = text;
    add({.kind = CompletionKind::kJobFailed, .status = error});
}

bool Reports::has_end_of(Rank rank) const noexcept {
    return std::ranges::any_of(queue_,
                               [rank](const Report& r) { return is_end(r) && r.rank == rank; });
}

void Reports::drop_end_of(Rank rank) noexcept {
    std::erase_if(queue_, [rank](const Report& r) { return is_end(r) && r.rank == rank; });
}

void Reports::drop_for_leave() noexcept {
    std::erase_if(queue_, [](const Report& r) {
        return r.kind != CompletionKind::kJobFailed && r.kind != CompletionKind::kLeft;
    });
}

bool Reports::is_valid(std::size_t ranks) const {
    std::vector<std::uint64_t> keys;
    Stage before = Stage::kJob;
    for (const Report& report : queue_) {
        const Stage stage = stage_of(report.kind);
        if (stage == Stage::kNone || stage < before) return false;
        before = stage;
        const bool names_peer = report.rank != kNoRank && stage != Stage::kLeft;  // its job is over
        if (names_peer ? report.rank >= ranks : is_end(report)) return false;
        const bool stays = stage == Stage::kLeft || report.kind == CompletionKind::kJobFailed;
        if (ranks == 0 && !stays) return false;
        if (const std::uint64_t key = key_of(report); key != 0) keys.push_back(key);
    }
    std::ranges::sort(keys);
    return std::ranges::adjacent_find(keys) == keys.end();
}

void Reports::check_invariants(std::size_t ranks) const { ULC_CHECK(is_valid(ranks)); }

}  // namespace ulc::endpoint
