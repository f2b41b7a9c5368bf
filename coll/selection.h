// SPDX-License-Identifier: BSD-3-Clause
// Selects the algorithm of a call that names none: by the table of the file that ULC_COLL_TABLE
// names, if one of its rules matches, else by the shipped tables (coll/tables/, measured;
// docs/benchmarks/ALGORITHMS.md).
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "coll/table.h"

namespace ulc::coll {

/// A rule of coll/tables/ as the build has made it.
struct ShippedRule {
    Op op;
    Medium medium;
    Span per_node;
    Span ranks;
    Span octets;
    const char* choice;
};

/// Rules of coll/tables/; made by coll/shipped_rules.py.
[[nodiscard]] std::span<const ShippedRule> shipped_rules() noexcept;

/// Every call matches one, for want of others that of a switch.
[[nodiscard]] const Table& shipped() noexcept;

class Selection {
public:
    Selection() = default;
    /// own: rules before the shipped ones. Errors: as Table::set().
    [[nodiscard]] Err set(std::vector<Rule> own) { return own_.set(std::move(own)); }
    /// Reads a file of coll/table_text.h. Errors: kInvalid, and mistake() says what to correct.
    [[nodiscard]] Err read(const char* path);
    [[nodiscard]] const std::string& mistake() const noexcept { return mistake_; }

    /// Returns the choice; *rule: the rule that contains it. A group on one node is Medium::kNode;
    /// a medium without a rule is treated as a switch.
    [[nodiscard]] const Choice& find(Situation at, const Rule** rule = nullptr) const noexcept;

private:
    Table own_;
    std::string mistake_;
};

/// The table in force in this process: of ULC_COLL_TABLE as it was at the first call. A mistake in
/// it is every operation's error.
[[nodiscard]] const Selection& selection();

}  // namespace ulc::coll
