// SPDX-License-Identifier: BSD-3-Clause
// The selection table: which algorithm a call takes, by operation, medium, ranks on a node, ranks
// and bytes. Rules do not overlap, so their order means nothing. A table is made of text
// (coll/table_text.h) once; then a call compares a few numbers.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/medium.h"
#include "coll/algorithm.h"

namespace ulc::coll {

struct Choice {
    const Algorithm* algorithm = nullptr;
    std::uint64_t segment = 0;
    std::uint32_t concurrent = 1;
};

/// "name", "name:k", "name@segment" or "name:k@segment" (decimal; segment in bytes). Errors:
/// kInvalid.
[[nodiscard]] Err parse_choice(Op op, std::string_view text, Choice& out) noexcept;

/// Range of numbers; both ends are within.
struct Span {
    std::uint64_t from = 0;
    std::uint64_t to = std::numeric_limits<std::uint64_t>::max();

    [[nodiscard]] bool has(std::uint64_t value) const noexcept {
        return from <= value && value <= to;
    }
    [[nodiscard]] bool meets(const Span& other) const noexcept {
        return from <= other.to && other.from <= to;
    }
    friend bool operator==(const Span&, const Span&) = default;
};

/// A call as far as every member knows it alike.
struct Situation {
    Op op = Op::kBarrier;
    Medium medium = Medium::kSwitch;
    std::uint16_t per_node = 1;  ///< the most members on one node
    std::uint16_t ranks = 1;
    std::uint64_t octets =
        0;  ///< length of the vector, or of each rank's block; 0 where ranks differ in that

    friend bool operator==(const Situation&, const Situation&) = default;
};

/// kNode if all members share one node, whatever joins nodes.
[[nodiscard]] constexpr Medium medium_of_group(const Situation& at) noexcept {
    return at.ranks > 1 && at.per_node >= at.ranks ? Medium::kNode : at.medium;
}

/// Returns the medium whose choice a call takes if its own medium has no rule for it: among the
/// processes of one machine that of another such medium, since frames are long there and cost time
/// on shared cores; else that of a switch, which has rules for everything.
[[nodiscard]] constexpr Medium stand_in(Medium medium) noexcept {
    return medium == Medium::kMachine || medium == Medium::kNode ? Medium::kCrowded
                                                                 : Medium::kSwitch;
}

struct Rule {
    Op op = Op::kBarrier;
    Medium medium = Medium::kSwitch;
    Span per_node;
    Span ranks;
    Span octets;
    std::string choice;  ///< as parse_choice() reads it
    unsigned line = 0;   ///< number in the text

    [[nodiscard]] bool meets(const Rule& other) const noexcept {
        return op == other.op && medium == other.medium && per_node.meets(other.per_node) &&
               ranks.meets(other.ranks) && octets.meets(other.octets);
    }
};

class Table {
public:
    /// Errors: kInvalid (a choice that parse_choice() refuses). Rules that overlap: the first one
    /// wins.
    [[nodiscard]] Err set(std::vector<Rule> rules);
    /// nullptr: no rule matches. Valid as long as the table.
    [[nodiscard]] const Choice* find(const Situation& at,
                                     const Rule** rule = nullptr) const noexcept;
    [[nodiscard]] std::span<const Rule> rules() const noexcept { return rules_; }

private:
    std::vector<Rule> rules_;      ///< by operation and medium
    std::vector<Choice> choices_;  ///< by rule
    /// Index of the first rule of an operation and medium.
    std::array<std::uint32_t, kOps * kMedia + 1> first_{};
};

}  // namespace ulc::coll
