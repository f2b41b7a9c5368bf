// SPDX-License-Identifier: BSD-3-Clause
// Any text as a selection table (coll/table_text.h): it is refused with a sentence that begins with
// the file's name, or what it says is within all bounds and can be looked up.
#include <string>

#include "../input.h"
#include "base/check.h"
#include "coll/table_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace ulc;
    using namespace ulc::coll;
    fuzz::Input in(data, size);
    TableText table;
    std::string mistake;
    if (parse_table("table", in.text(), table, mistake) != Err::kOk) {
        ULC_CHECK(mistake.starts_with("table:") && mistake.size() < size + 2000);
        return 0;
    }
    ULC_CHECK(mistake.empty());
    ULC_CHECK(table.rules.size() <= kTableRowsMax && table.cells.size() <= kTableRowsMax);
    for (const Cell& cell : table.cells)
        ULC_CHECK(!cell.us.empty() && cell.at.ranks >= 1 && cell.at.per_node >= 1);
    Table rules;
    ULC_CHECK(rules.set(table.rules) == Err::kOk);
    for (const Rule& rule : table.rules) {
        constexpr std::uint64_t kRanksMax = UINT16_MAX;
        if (rule.ranks.from > kRanksMax || rule.per_node.from > kRanksMax) continue;
        const Situation first{rule.op, rule.medium, static_cast<std::uint16_t>(rule.per_node.from),
                              static_cast<std::uint16_t>(rule.ranks.from), rule.octets.from};
        if (medium_of_group(first) != rule.medium) continue;
        const Rule* found = nullptr;
        const Choice* choice = rules.find(first, &found);
        ULC_CHECK(choice != nullptr && choice->algorithm != nullptr);
        ULC_CHECK(choice->concurrent <= kConcurrentMax && choice->segment <= kSegmentMax);
        ULC_CHECK(found->line == rule.line && found->choice == rule.choice);
    }
    return 0;
}
