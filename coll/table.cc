// SPDX-License-Identifier: BSD-3-Clause
#include "coll/table.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace ulc::coll {
namespace {

/// Long enough that a segment's fixed cost vanishes, short enough that eight of them fit a
/// receiver's memory.
constexpr std::uint64_t kSegmentDefault = 64 * 1024;

/// The digits of `text` up to its end. False: there are other characters, none, or the value is 0.
template <typename T>
[[nodiscard]] bool parse_positive(std::string_view text, T& out) noexcept {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    return error == std::errc{} && end == text.data() + text.size() && out > 0;
}

[[nodiscard]] std::size_t place_of(Op op, Medium medium) noexcept {
    return std::size_t{static_cast<std::uint8_t>(op)} * kMedia + static_cast<std::uint8_t>(medium);
}

}  // namespace

Err parse_choice(Op op, std::string_view text, Choice& out) noexcept {
    out = {.algorithm = nullptr, .segment = kSegmentDefault, .concurrent = 1};
    const std::size_t at = text.find('@');
    if (at != std::string_view::npos) {
        if (!parse_positive(text.substr(at + 1), out.segment)) return Err::kInvalid;
        text = text.substr(0, at);
    }
    const std::size_t colon = text.find(':');
    if (colon != std::string_view::npos) {
        if (!parse_positive(text.substr(colon + 1), out.concurrent)) return Err::kInvalid;
        text = text.substr(0, colon);
    }
    out.algorithm = find_algorithm(op, text);
    return out.algorithm == nullptr ? Err::kInvalid : Err::kOk;
}

Err Table::set(std::vector<Rule> rules) {
    std::ranges::stable_sort(rules, {},
                             [](const Rule& rule) { return place_of(rule.op, rule.medium); });
    std::vector<Choice> choices(rules.size());
    std::array<std::uint32_t, kOps * kMedia + 1> first{};
    for (std::size_t i = 0; i < rules.size(); ++i) {
        if (parse_choice(rules[i].op, rules[i].choice, choices[i]) != Err::kOk)
            return Err::kInvalid;
        ++first[place_of(rules[i].op, rules[i].medium) + 1];
    }
    for (std::size_t i = 1; i < first.size(); ++i)
        first[i] += first[i - 1];
    rules_ = std::move(rules);
    choices_ = std::move(choices);
    first_ = first;
    return Err::kOk;
}

const Choice* Table::find(const Situation& at, const Rule** rule) const noexcept {
    const std::size_t place = place_of(at.op, at.medium);
    for (std::uint32_t i = first_[place]; i < first_[place + 1]; ++i) {
        const Rule& one = rules_[i];
        if (!one.octets.has(at.octets) || !one.ranks.has(at.ranks) ||
            !one.per_node.has(at.per_node))
            continue;
        if (rule != nullptr) *rule = &one;
        return &choices_[i];
    }
    return nullptr;
}

}  // namespace ulc::coll
