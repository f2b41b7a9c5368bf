#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the papers' applications on this machine: speed-up and share of communication, with direct
and with emulated broadcast.

    tools/applications.py        1, 2 and 4 ranks, sizes of URTP §5 and GAMMA §6, shared memory
    tools/applications.py --rate 100000000 --only spmv --ranks 2 --rounds 3

Every round runs each application alone, then on the ranks with direct broadcast and with broadcast
by unicast, each as a separate program that checks its result; the table has the medians. Speed-up
is against the run on one rank. With more ranks than cores it means little: for the papers' own
clusters see `ulc-sim tables applications`.

Writes FOLDER/applications.json, applications.txt, SVG plots, and the matrices (tools/mtx-gen),
which are kept for the next run.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

import report

ROOT = pathlib.Path(__file__).resolve().parent.parent
PRODUCTS = [400, 600, 1000, 1500]  # GAMMA §6.3
DENSE = [128, 512, 1024]  # URTP §5 begins with 128
UNKNOWNS = [1100, 4400, 110000]  # URTP §5: 110,000, a 25th and a 100th of it, 22 entries a row
ORDERS = [1000, 2000, 4000]  # GAMMA §6.2
TIME = re.compile(r"^time: ([\d.]+) ms .*communication [\d.]+ ms = ([\d.]+) %", re.MULTILINE)


def matrix(folder, rows, seed, entries_a_row=None):
    """Returns a file of tools/mtx-gen, made once."""
    path = folder / (f"{rows}.{seed}.mtx" if entries_a_row is None else f"{rows}.sparse.mtx")
    if not path.exists():
        command = [ROOT / "tools/mtx-gen", str(rows), str(rows), "--seed", str(seed), "-o",
                   f"{path}.part"]
        if entries_a_row is not None:
            command += ["--density", str(entries_a_row / rows)]
        subprocess.run(command, check=True)
        os.replace(f"{path}.part", path)
    return str(path)


def programs(folder, only):
    """Yields (application, size, its command), in the order of the table."""
    def wanted(name):
        return not only or name in only
    if wanted("master"):
        for m in PRODUCTS:
            yield "master", m, ["ulc-matmul", "--master", "--repeat", "3", matrix(folder, m, 1),
                                matrix(folder, m, 2)]
    if wanted("matmul"):
        for m in DENSE:
            yield "matmul", m, ["ulc-matmul", "--repeat", "3", matrix(folder, m, 1),
                                matrix(folder, m, 2)]
    if wanted("spmv"):
        for n in UNKNOWNS:
            yield "spmv", n, ["ulc-spmv", "--iterations", "100", "--repeat", "3",
                              matrix(folder, n, 3, 22)]
    if wanted("linpack"):
        for n in ORDERS:
            yield "linpack", n, ["ulc-linpack", "--order", str(n), "--repeat", "3"]


def run(options, command, ranks, unicast):
    """Returns milliseconds, and the percentage of them in communication. Ends the program if it or
    its check fails."""
    command = [str(options.build / "bench/apps" / command[0]), *command[1:],
               *(["--unicast"] if unicast else [])]
    if ranks > 1:
        wire = ["--rate", options.rate] if options.rate else []
        command = [str(options.build / "tools/ulc"), "run", "-n", str(ranks), "--embedded", *wire,
                   *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=options.program_seconds,
                          check=False)
    found = TIME.search(done.stdout)
    if done.returncode != 0 or found is None or "check: ok" not in done.stdout:
        sys.exit(f"error: {' '.join(command)} ended with status {done.returncode}:\n"
                 f"{done.stdout}{done.stderr}")
    return float(found[1]), float(found[2])


def measure(options):
    """Returns by (application, size): times of one rank, and of each (ranks, unicast) with its
    shares."""
    found = {}
    ways = [(ranks, unicast) for ranks in options.ranks for unicast in (False, True)]
    matrices = options.folder / "matrices"
    matrices.mkdir(parents=True, exist_ok=True)
    for round_number in range(options.rounds):
        for name, size, command in programs(matrices, options.only):
            print(f"round {round_number + 1} of {options.rounds}: {name} {size}", file=sys.stderr)
            cell = found.setdefault((name, size), {way: [] for way in [(1, False), *ways]})
            for ranks, unicast in cell:
                cell[ranks, unicast].append(run(options, command, ranks, unicast))
    return found


def rows_of(found):
    """Returns medians: one row for each application, size, number of ranks and kind of broadcast.
    """
    rows = []
    for (name, size), cell in found.items():
        alone = statistics.median(ms for ms, _ in cell[1, False])
        for (ranks, unicast), runs in cell.items():
            ms = statistics.median(ms for ms, _ in runs)
            rows.append({"application": name, "size": size, "ranks": ranks,
                         "broadcast": "unicast" if unicast else "direct", "ms": ms,
                         "communication_percent": statistics.median(share for _, share in runs),
                         "speed_up": alone / ms})
    return rows


def table_of(rows):
    lines = [f"{'application':>11} {'size':>7} {'ranks':>5} {'broadcast':>9} {'ms':>10} "
             f"{'speed-up':>8} {'communication':>13}"]
    for row in rows:
        lines.append(f"{row['application']:>11} {row['size']:>7} {row['ranks']:>5} "
                     f"{row['broadcast']:>9} {row['ms']:>10.3f} "
                     f"{row['speed_up']:>8.2f} {row['communication_percent']:>11.1f} %")
    return "\n".join(lines) + "\n"


def plots(folder, rows):
    names = dict.fromkeys(row["application"] for row in rows)
    for name in names:
        curves = {}
        for row in rows:
            if row["application"] == name and row["ranks"] > 1:
                curve = curves.setdefault(f"{row['ranks']} ranks, {row['broadcast']}", [])
                curve.append((row["size"], row["speed_up"]))
        report.draw(folder, f"applications-{name}", name, "order", "speed-up", curves)


def numbers(text):
    return [int(one) for one in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=numbers, default=[2, 4])
    parser.add_argument("--only", type=lambda text: text.split(","),
                        help="of master, matmul, spmv, linpack")
    parser.add_argument("--rate",
                        help="bits a second of each link, as for ulc run; none: shared memory, at "
                             "full speed")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--program-seconds", type=float, default=300,
                        help="most that one program may take")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build/applications")
    options = parser.parse_args()
    unknown = set(options.only or []) - {"master", "matmul", "spmv", "linpack"}
    if unknown or min(options.ranks, default=0) < 2 or options.rounds < 1:
        parser.error("--only takes master, matmul, spmv, linpack; --ranks numbers from 2 on; "
                     "--rounds at least 1")
    if not (options.build / "bench/apps/ulc-matmul").exists():
        sys.exit(f"error: {options.build} has no applications; "
                 f"build it first: ninja -C {options.build}")
    rows = rows_of(measure(options))
    (options.folder / "applications.json").write_text(json.dumps(rows, indent=2) + "\n")
    table = table_of(rows)
    (options.folder / "applications.txt").write_text(table)
    plots(options.folder, rows)
    print(table, end="")


if __name__ == "__main__":
    main()
