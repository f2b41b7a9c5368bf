#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes an example of the engine's configuration file: each option with its meaning and default.

    tools/shared/engine_config.py options.def engine.toml

The table is pmd_app/main/options.def, so the file has each option and no other. Every option stands
in a line that begins with '#'; without it the line is valid TOML.
"""
import sys
import textwrap

import man_options

HEAD = """\
# Options of an engine that systemd starts: ulc-engine@NAME reads /etc/ulc/NAME.toml and serves
# /run/ulc/NAME.sock; programs look for the name "engine" first.
#
# Each option shows its default, or an example where there is none. Remove the '#' at the head of a
# line to change it, then run: systemctl restart ulc-engine@NAME
# Times may have a unit, in quotes: peer-dead = "5s"
# An engine needs a device. All else may stay as it is. See also: man ulc-engine
"""
# Shown for options whose default is no value.
EXAMPLES = {
    "device": '"0000:03:00.0"',
    "eal": '["--log-level=lib.eal:debug"]',
    "allow-uid": '["alice"]',
    "allow-gid": '["users"]',
    "trace": '"/run/ulc/engine.trace"',
    "seal": '"/etc/ulc/engine.key"',
    "mesh": '"1,2"',
    "ip": '"10.0.0.5/24,peer=10.0.0.1:30791,key=/etc/ulc/engine.key"',
    "gateway": '"10.0.0.1"',
    "param": '["ack-delay=300us"]',
}


def value_of(flag, kind, default):
    if kind in ("list", "text") and default == '""':
        return EXAMPLES[flag]
    return default  # numbers, quoted text and true or false are written alike in C++ and TOML


def entry(match):
    flag, _, kind, default, unit, low, high, text = match.groups()
    note = ""
    if kind in ("u32", "nanos"):
        note = f" ({low} to {high}{' ' + unit if unit else ''})"
    if kind != "text":  # the first word may be a value
        text = text[0].upper() + text[1:]
    lines = textwrap.wrap(text + note + ".", width=96, break_on_hyphens=False,
                          break_long_words=False)
    return [""] + ["# " + line for line in lines] + [f"#{flag} = {value_of(flag, kind, default)}"]


def main():
    table, out = sys.argv[1:]
    lines = HEAD.splitlines()
    for number, line in enumerate(man_options.logical_lines(table), 1):
        section = man_options.SECTION.match(line)
        if section:
            lines += ["", f"# ---- {section.group(1)} ----"]
        elif line.startswith("ULC_OPTION"):
            match = man_options.OPTION.match(line.strip())
            if match is None:
                sys.exit(f"{table}:{number}: not one option a line as the head of the table says")
            lines += entry(match)
    with open(out, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
