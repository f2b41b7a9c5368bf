// SPDX-License-Identifier: BSD-3-Clause
// Profiles: words to tables, and tables laid over each other.
#include <algorithm>
#include <array>

#include "base/check.h"
#include "urtp/policies/tables.h"

namespace ulc::urtp {

namespace {

constexpr std::array kTables = {
#define ULC_POLICY(table) &table,
#include "urtp/policies/policies.def"
#undef ULC_POLICY
};

template <typename Entry>
void lay(Entry& under, Entry over) noexcept {
    if (over != nullptr) under = over;
}

/// Every entry that `over` has.
void lay_over(Policy& laid, const Policy& over) noexcept {
    laid.recovers = laid.recovers && over.recovers;
    lay(laid.next_ack, over.next_ack);
    lay(laid.credit, over.credit);
    lay(laid.on_gap, over.on_gap);
    lay(laid.on_next_hole, over.on_next_hole);
    lay(laid.on_no_room, over.on_no_room);
    lay(laid.on_stream, over.on_stream);
    lay(laid.may_hold, over.may_hold);
    lay(laid.on_room, over.on_room);
    lay(laid.on_reserve, over.on_reserve);
    lay(laid.receive_mode, over.receive_mode);
    lay(laid.group_rules, over.group_rules);
    lay(laid.may_start, over.may_start);
    lay(laid.on_flow, over.on_flow);
    lay(laid.on_tail, over.on_tail);
    if (over.on_tail != nullptr) laid.repeats_tail = over.repeats_tail;
    lay(laid.on_refused, over.on_refused);
    lay(laid.on_repeated_ack, over.on_repeated_ack);
    lay(laid.on_opened, over.on_opened);
    lay(laid.on_acked, over.on_acked);
    lay(laid.on_lost, over.on_lost);
}

/// Entries that every caller calls without a test.
bool complete(const Policy& p) noexcept {
    return p.next_ack != nullptr && p.credit != nullptr && p.on_gap != nullptr &&
           p.on_no_room != nullptr && p.on_room != nullptr && p.on_tail != nullptr &&
           p.on_refused != nullptr && p.receive_mode != nullptr;
}

}  // namespace

std::span<const Policy* const> policies() noexcept { return kTables; }

Err resolve(std::string_view profile, Policy& policy, Params& params) noexcept {
    if (profile.empty() || profile.size() > kProfileOctetsMax) return Err::kInvalid;
    Policy laid = *kTables.front();
    lay_over(laid, kBackoff);
    Params tuned = params;
    std::uint32_t used = 0;
    for (std::size_t at = 0; at <= profile.size();) {
        const std::size_t end = std::min(profile.find('+', at), profile.size());
        const std::string_view word = profile.substr(at, end - at);
        const auto* const table = std::find_if(kTables.begin(), kTables.end(),
                                               [&](const Policy* p) { return p->word == word; });
        if (table == kTables.end()) return Err::kInvalid;
        const auto bit = 1U << static_cast<std::uint32_t>(table - kTables.begin());
        if ((used & bit) != 0) return Err::kInvalid;
        used |= bit;
        const Policy& over = **table;
        if (over.tune != nullptr) over.tune(tuned);
        lay_over(laid, over);
        at = end + 1;
    }
    // A group's packets are numbered by one rule.
    if (tuned.number_vector && laid.group_rules != nullptr) return Err::kInvalid;
    ULC_CHECK(complete(laid));
    if (laid.repeats_tail) tuned.ack_duplicates = true;
    policy = laid;
    params = tuned;
    return Err::kOk;
}

std::string policy_words() {
    std::string text;
    for (const Policy* policy : kTables) {
        if (!text.empty()) text += ", ";
        text += policy->word;
    }
    return text;
}

}  // namespace ulc::urtp
