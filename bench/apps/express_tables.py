#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs both applications of Express §5.2 in four ways, and prints its tables 1, 3 and 5 with ours.

    bench/apps/express_tables.py                          2 processes, engines inside, shared memory
    bench/apps/express_tables.py --rate 22400000          links as slow as the iPSC/2's
    bench/apps/express_tables.py --delay 200 --only route

A way is a flow control (ULC_PROFILE=optimistic or conservative) and a delivery (the contract: a
message interrupts a thread that computes; or polling only). Every round runs each application in
each way, one after the other, as separate programs that check their own results. Times are medians
of the rounds. A gain is time without / time with − 1, in percent; behind it the least and the most
of the rounds.

  table 1  both techniques against neither. The paper's other system is the library of the iPSC/2,
           which also copies; here it is the same program with conservative flow control that polls
  table 3  optimistic against conservative flow control, both by the contract
  table 5  polling only against the contract, both optimistic: what polling only costs

The paper has 32 processes for the grid and 16 for the router. Processes beyond the cores of the
machine wait for each other's processors, which changes every ratio.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TIME = re.compile(r"^time: ([\d.]+) ms", re.MULTILINE)
POLLED = re.compile(r"^messages polled: ([\d.]+) %", re.MULTILINE)

APPLICATIONS = {"sor": "Red/Black SOR", "route": "LocusRoute"}
# Profile, and whether messages may interrupt no thread.
WAYS = {"both": ("optimistic", False), "conservative": ("conservative", False),
        "polling": ("optimistic", True), "neither": ("conservative", True)}
# Number, title, way in the numerator, way in the denominator, the paper's percentages.
TABLES = [(1, "gain of both techniques", "neither", "both", {"sor": 7.1, "route": 33}),
          (3, "gain of optimism", "conservative", "both", {"sor": 2.5, "route": 11}),
          (5, "cost of polling only", "polling", "both", {"sor": 0, "route": 39})]


def run(options, name, way):
    """Returns the milliseconds of one run. Ends the program if it or its check fails."""
    profile, polls_only = WAYS[way]
    command = [str(options.build / "tools/ulc"), "run", "-n", str(options.processes), "--embedded"]
    if options.rate:
        command += ["--rate", options.rate]
    if options.delay:
        command += ["--delay", options.delay]
    command += [str(options.build / f"bench/apps/ulc-{name}"), *options.arguments[name]]
    if polls_only:
        command.append("--polls-only")
    done = subprocess.run(command, capture_output=True, text=True, check=False,
                          timeout=options.program_seconds,
                          env=dict(os.environ, ULC_PROFILE=profile))
    time, polled = TIME.search(done.stdout), POLLED.search(done.stdout)
    if done.returncode != 0 or time is None or "check: ok" not in done.stdout:
        sys.exit(f"error: {' '.join(command)} with ULC_PROFILE={profile} ended with status "
                 f"{done.returncode}:\n{done.stdout}{done.stderr}")
    if polls_only and (polled is None or float(polled[1]) != 100):
        sys.exit(f"error: {' '.join(command)}: a message interrupted a thread:\n{done.stdout}")
    return float(time[1])


def measure(options):
    """Returns the times by application and way."""
    found = {name: {way: [] for way in WAYS} for name in options.only}
    for turn in range(options.rounds):
        for name, ways in found.items():
            print(f"round {turn + 1} of {options.rounds}: {name}", file=sys.stderr)
            for way, times in ways.items():
                times.append(run(options, name, way))
    return found


def gain(ways, without, having):
    """Returns the gain of the medians, and the least and the most of a round, in percent."""
    rounds = [(a / b - 1) * 100 for a, b in zip(ways[without], ways[having])]
    median = statistics.median(ways[without]) / statistics.median(ways[having])
    return (median - 1) * 100, min(rounds), max(rounds)


def rows_of(found):
    return [{"table": number, "what": title, "application": name, "paper": paper[name],
             **dict(zip(("ours", "least", "most"), gain(ways, without, having)))}
            for number, title, without, having, paper in TABLES for name, ways in found.items()]


def text_of(options, found, rows):
    lines = [f"Express tables 1, 3 and 5: {options.processes} processes on {os.cpu_count()} cores, "
             f"{options.rounds} rounds (paper: 32 for the grid, 16 for the router)", "",
             f"{'table':>5}  {'':<24}{'application':<15}{'paper, %':>9}{'ours, %':>9}"
             "   of a round, %"]
    for row in rows:
        lines.append(f"{row['table']:>5}  {row['what']:<24}{APPLICATIONS[row['application']]:<15}"
                     f"{row['paper']:>9.1f}{row['ours']:>9.1f}   {row['least']:.0f} to "
                     f"{row['most']:.0f}")
    lines += ["", f"{'ms, median':<15}" + "".join(f"{way:>14}" for way in WAYS)]
    for name, ways in found.items():
        lines.append(f"{APPLICATIONS[name]:<15}" +
                     "".join(f"{statistics.median(ways[way]):>14.3f}" for way in WAYS))
    if set(found) == set(APPLICATIONS):
        lines.append("")
        for number, title, *_ in TABLES:
            ours = {row["application"]: row["ours"] for row in rows if row["table"] == number}
            holds = "holds" if ours["route"] > ours["sor"] else "DIFFERS"
            lines.append(f"{holds:<8} table {number}: {title} is greater for the router")
    return "\n".join(lines)


def applications_of(text):
    names = text.split(",")
    if not set(names) <= set(APPLICATIONS):
        raise argparse.ArgumentTypeError(f"names sor, route or both, as in sor,route; not {text}")
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default=list(APPLICATIONS), type=applications_of,
                        help="of sor, route; separated by commas")
    parser.add_argument("--rate", help="of each link, in bits a second; without: shared memory")
    parser.add_argument("--delay", help="of each frame, in microseconds")
    parser.add_argument("--sor", default="-i 200", help="options of ulc-sor (default: %(default)s)")
    parser.add_argument("--route", default="", help="options of ulc-route")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--program-seconds", type=float, default=120)
    parser.add_argument("--json", type=pathlib.Path, help="also write the figures there")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds is at least 1")
    if not (options.build / "tools/ulc").exists():
        parser.error(f"{options.build} has no tools/ulc; run: tools/build release, or give --build")
    options.arguments = {"sor": options.sor.split(), "route": options.route.split()}
    found = measure(options)
    rows = rows_of(found)
    print(text_of(options, found, rows))
    if options.json is not None:
        options.json.write_text(json.dumps({"rows": rows, "ms": found}, indent=1) + "\n",
                                encoding="utf-8")


if __name__ == "__main__":
    main()
