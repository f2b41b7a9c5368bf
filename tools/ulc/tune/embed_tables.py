#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes selection tables (coll/tables/*.toml) the source of shipped_texts(), which
tools/ulc/tune/files.h declares.

    embed_tables.py TABLE... OUTPUT
"""
import sys


def main():
    *tables, output = sys.argv[1:]
    with open(output, "w", encoding="utf-8") as out:
        out.write("// Made by tools/ulc/tune/embed_tables.py of coll/tables/.\n"
                  "#include \"tools/ulc/tune/files.h\"\n\n"
                  "// Longer than the standard asks compilers to take, which ours do.\n"
                  "#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n\n"
                  "namespace ulc::tools {\n\n"
                  "std::span<const std::string_view> shipped_texts() noexcept {\n"
                  "    using namespace std::string_view_literals;\n"  # clang counts steps of strlen
                  "    static constexpr std::string_view kTexts[] = {\n")
        for table in tables:
            with open(table, encoding="utf-8") as file:
                out.write("R\"TABLE(" + file.read() + ")TABLE\"sv,\n")
        out.write("    };\n    return kTexts;\n}\n\n}  // namespace ulc::tools\n")


main()
