#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes the rules of selection tables (coll/tables/*.toml) the source of shipped_rules().

    shipped_rules.py TABLE... OUTPUT
"""
import sys
import tomllib


HEAD = """// Made by coll/shipped_rules.py of coll/tables/.
#include <cstdint>

#include "coll/selection.h"

namespace ulc::coll {

std::span<const ShippedRule> shipped_rules() noexcept {
    constexpr std::uint64_t kMax = UINT64_MAX;
    static constexpr ShippedRule kRules[] = {
"""
TAIL = """
    };
    return kRules;
}

}  // namespace ulc::coll
"""


def enumerator(word):
    return "k" + "".join(part.capitalize() for part in word.split("_"))


def span(rule, of):
    end = rule.get(of + "_to")
    return f"{{{rule.get(of + '_from', 0)}U, {'kMax' if end is None else f'{end}U'}}}"


def main():
    *tables, output = sys.argv[1:]
    lines = []
    for table in tables:
        with open(table, "rb") as file:
            for rule in tomllib.load(file)["rule"]:
                operation = enumerator(rule["operation"])
                medium = enumerator(rule.get("medium", "switch"))
                spans = ", ".join(span(rule, of) for of in ("per_node", "ranks", "octets"))
                lines.append(f"{{Op::{operation}, Medium::{medium}, {spans}, "
                             f"\"{rule['choice']}\"}},")
    with open(output, "w", encoding="utf-8") as file:
        file.write(HEAD + "\n".join(lines) + TAIL)


main()
