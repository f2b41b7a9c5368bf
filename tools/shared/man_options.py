#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Fills @OPTIONS@ and @PARAMS@ of a man page from the tables of options and of parameters.

    tools/shared/man_options.py options.def params.def PAGE.in PAGE

The tables are those of pmd_app/main/, so the page has each option and no other.
"""
import re
import sys

STRING = r'"((?:[^"\\]|\\.)*)"'
OPTION = re.compile(r"^ULC_(?:OPTION|PARAM)\(" + STRING + r", (\w+), (\w+), (.*?), " + STRING +
                    r", (.*?), (.*?), " + STRING + r"\)$")
SECTION = re.compile(r"^// --- (.*)$")
VALUES = {"u32": "N", "nanos": "TIME", "text": "TEXT", "list": "TEXT", "flag": ""}


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


def entry(match):
    flag, _, kind, default, unit, low, high, text = match.groups()
    value = VALUES[kind]
    dashes, between = ("", "=") if match.group(0).startswith("ULC_PARAM") else ("\\-\\-", " ")
    head = f".BI {dashes}{roff(flag)}"
    head = f"{head} \"{between}{value}\"" if value else head.replace(".BI", ".B")
    lines = [".TP", head, roff(text[0].upper() + text[1:]) + "."]
    notes = []
    if kind in ("u32", "nanos"):
        notes.append(f"{low} to {high}{' ' + unit if unit else ''}; default {default}")
    elif kind == "text" and default.strip('"'):
        notes.append("default " + default.strip('"'))
    if notes:
        lines.append("(" + roff("; ".join(notes)) + ")")
    return lines


def logical_lines(table):
    """Lines of the table; an option over several lines is one, its strings joined."""
    text = open(table, encoding="utf-8").read()
    return re.sub(r"\n[ \t]+(?=\S)", " ", text).replace('" "', "").splitlines()


def entries(table):
    """Returns the lines of the page for each row of the table."""
    lines = []
    for number, line in enumerate(logical_lines(table), 1):
        section = SECTION.match(line)
        if section:
            lines.append(f".SS {roff(section.group(1)[0].upper() + section.group(1)[1:])}")
        elif line.startswith("ULC_"):
            match = OPTION.match(line.strip())
            if match is None:
                sys.exit(f"{table}:{number}: not one option a line as the head of the table says")
            lines += entry(match)
    return "\n".join(lines)


def main():
    options, params, page, out = sys.argv[1:]
    text = open(page, encoding="utf-8").read()
    text = text.replace("@OPTIONS@", entries(options)).replace("@PARAMS@", entries(params))
    open(out, "w", encoding="utf-8").write(text)


if __name__ == "__main__":
    main()
