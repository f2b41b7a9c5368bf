#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares collectives of ULC with those of Open MPI and MPICH over TCP, on this machine, in turns.

    tools/compare_mpi.py                         2, 4 and 8 ranks, every operation, 8 B to 1 MiB
    tools/compare_mpi.py --ranks 4 --sizes 8,65536 --rounds 9 --ways single
    tools/compare_mpi.py --mpi                   MPI programs over mca_coll_ulc.so, coll.h itself
                                                 and Open MPI over TCP
    tools/compare_mpi.py --wire namespaces       the MPIs on one network namespace a rank, joined
                                                 by a bridge (root)

Every round runs all systems once, each as a separate program, so that a disturbance affects all;
the table shows medians over the rounds and ratios of medians. Systems: embedded (rank = node with
its engine inside), daemon (an engine a node), tree (embedded, by unicast: binomial trees, rings),
Open MPI with btl tcp, MPICH with UCX over tcp. ULC's nodes share memory, as `ulc run` joins them:
no switch runs with them. A system that is not installed is left out with a line that says what to
install.

Writes FOLDER/raw/*.json (for tools/report.py too), compare.json, compare.txt and SVG plots.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

import report

ROOT = pathlib.Path(__file__).resolve().parent.parent
# By unicast alone, as on a network without broadcast.
TREES = {"barrier": "dissemination", "broadcast": "binomial", "gather": "binomial",
         "scatter": "binomial", "allgather": "ring",
         "reduce": "binomial", "allreduce": "binomial", "reduce_scatter": "binomial",
         "scan": "doubling", "exscan": "doubling"}
OPERATIONS = [*TREES, "alltoall"]
WAYS = {"stream": "", "single": "/single", "skewed": "/skewed"}
# Maximum cost of each compared with Open MPI.
BUDGETS = {"embedded": 1.0, "daemon": 3.0, "component": 1.0}
# Bounds of the component's time compared with coll.h's own; the larger of the two holds.
OWN_FACTOR, OWN_MICROSECONDS = 1.2, 0.5
NAMES = {"openmpi": "Open MPI", "mpich": "MPICH", "tree": "tree", "embedded": "embedded",
         "daemon": "daemon", "component": "component",
         "component_daemon": "component, daemons"}

# Names of raw/<set><ranks>.<round>.json, as tools/report.py knows them.
SETS = {"openmpi": "mpi_collective", "mpich": "mpich_collective",
        "embedded": "embedded_collective", "tree": "embedded_collective",
        "daemon": "collective", "component": "component_collective",
        "component_daemon": "component_daemon_collective"}
# Prefixes of a system's benchmark names; report.py removes ULC's.
PREFIXES = {"openmpi": "mpi/", "mpich": "mpich/", "component": "mpi/", "component_daemon": "mpi/"}


class Namespaces:
    """One network namespace a rank, joined by a bridge in a separate one. All end with the
    processes in them."""

    def __init__(self, ranks, folder):
        self.names = [f"ulccmp{os.getpid()}n{i}" for i in range(ranks)]
        self.bridge = f"ulccmp{os.getpid()}b"
        self.agent = folder / "enter_namespace"
        self.agent.write_text("#!/bin/bash\n# An rsh of which each host is a network namespace.\n"
                              "while [[ $1 == -* ]]; do shift; done\nhost=$1; shift\n"
                              f"exec ip netns exec ulccmp{os.getpid()}n$((${{host##*.}} - 1)) "
                              "/bin/bash -c \"$*\"\n")
        self.agent.chmod(0o755)

    def hosts(self):
        return [f"10.77.0.{i + 1}" for i in range(len(self.names))]

    def __enter__(self):
        commands = [f"netns add {self.bridge}",
                    f"-n {self.bridge} link add name join0 type bridge",
                    f"-n {self.bridge} link set join0 up"]
        for i, name in enumerate(self.names):
            commands += [f"netns add {name}", f"-n {name} link set lo up",
                         f"-n {self.bridge} link add p{i} type veth peer name eth0 netns {name}",
                         f"-n {self.bridge} link set p{i} master join0 up",
                         f"-n {name} link set eth0 up",
                         f"-n {name} addr add 10.77.0.{i + 1}/24 dev eth0"]
        try:
            for command in commands:
                subprocess.run(["ip", *command.split()], check=True, capture_output=True, text=True)
        except subprocess.CalledProcessError as error:
            self.__exit__()
            sys.exit(f"error: ip {command}: {error.stderr.strip()}; --wire namespaces needs root")
        return self

    def __exit__(self, *_):
        for name in [*self.names, self.bridge]:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def open_mpi(build, ranks, namespaces):
    command = ["mpirun.openmpi", "--oversubscribe", "--mca", "btl", "tcp,self", "--mca", "pml",
               "ob1"]
    if os.geteuid() == 0:
        command.append("--allow-run-as-root")
    if namespaces:
        command += ["--host", ",".join(namespaces.hosts()), "--mca", "plm_rsh_agent",
                    str(namespaces.agent), "--mca", "oob_tcp_if_include",
                    "eth0", "--mca", "btl_tcp_if_include", "eth0", "--map-by", "node", "--mca",
                    "mpi_yield_when_idle", "1"]
        command = ["ip", "netns", "exec", namespaces.names[0], *command]
    return [*command, "-np", str(ranks), str(build / "bench/ulc-bench-collective-mpi")], {}


def mpich(build, ranks, namespaces):
    command = ["mpirun.mpich"]
    environment = {"UCX_TLS": "tcp,self", "MPIR_CVAR_NOLOCAL": "1"}
    if namespaces:
        command += ["-launcher", "rsh", "-launcher-exec", str(namespaces.agent), "-hosts",
                    ",".join(namespaces.hosts()), "-iface", "eth0"]
        command = ["ip", "netns", "exec", namespaces.names[0], *command]
        environment["UCX_NET_DEVICES"] = "eth0"
    return [*command, "-np", str(ranks),
            str(build / "bench/ulc-bench-collective-mpich")], environment


def ulc(how):
    def command(build, ranks, _):
        return [str(build / "tools/ulc"), "run", "-n", str(ranks), *how(ranks),
                str(build / "bench/ulc-bench-collective")], {}
    return command


def component(options):
    """Runs the program of the reference, under the same mpirun, over ULC's component."""
    def command(build, ranks, _):
        program, _ = open_mpi(build, ranks, None)
        cluster = [str(build / "tools/ulc"), "cluster", "--nodes", str(ranks), *options, "--"]
        shell = ["bash", "-c", 'eval "$("$0" env openmpi)" && exec "$@"', str(build / "tools/ulc")]
        return [*shell, *cluster, *program], {}
    return command


# Program that must be there, package that contains it, command.
SYSTEMS = {
    "openmpi": ("mpirun.openmpi", "bench/ulc-bench-collective-mpi", "openmpi-bin libopenmpi-dev",
                open_mpi),
    "embedded": (None, "bench/ulc-bench-collective", None, ulc(lambda _: ["--embedded"])),
    "mpich": ("mpirun.mpich", "bench/ulc-bench-collective-mpich", "mpich libmpich-dev", mpich),
    "daemon": (None, "bench/ulc-bench-collective", None,
               ulc(lambda ranks: ["--nodes", str(ranks)])),
    "component": ("mpirun.openmpi", "coll/mpi/mca_coll_ulc.so", "openmpi-bin libopenmpi-dev",
                  component(["--embedded"])),
    "component_daemon": ("mpirun.openmpi", "coll/mpi/mca_coll_ulc.so",
                         "openmpi-bin libopenmpi-dev", component([])),
}


def installed(build):
    """Returns the systems to run; prints for each other one what it lacks."""
    found = []
    for name, (program, bench, packages, _) in SYSTEMS.items():
        if program and shutil.which(program) is None:
            print(f"left out: {NAMES[name]} is not installed; for its figures: "
                  f"apt-get install {packages}, then tools/build release")
        elif not (build / bench).exists():
            print(f"left out: {NAMES[name]}: {bench} is not built; run: tools/build release")
        else:
            found.append(name)
    return found


def run(system, ranks, options, round_number, filter_text, namespaces):
    """Runs one program; its result becomes raw/<set><ranks>.<round>.json. Returns why it failed, or
    None."""
    command, environment = SYSTEMS[system][3](options.build, ranks, namespaces)
    base = f"{SETS[system]}{ranks}.{round_number}"
    out = options.folder / "raw" / f"{base}.json"
    log = options.folder / "log" / f"{base}.txt"
    command += [f"--benchmark_filter={filter_text}", f"--benchmark_out={out}",
                "--benchmark_out_format=json"]
    with log.open("w") as text:
        process = subprocess.Popen(command, stdout=text, stderr=subprocess.STDOUT,
                                   stdin=subprocess.DEVNULL,
                                   env={**os.environ, **environment})
        try:
            status = process.wait(options.program_seconds)
        except subprocess.TimeoutExpired:
            process.terminate()
            process.wait()
            status = f"not done within {options.program_seconds} s"
    if status == 0:
        return None
    out.unlink(missing_ok=True)
    lines = log.read_text(errors="replace").strip().splitlines()
    last = lines[-1][:150] if lines else "no output"
    return f"{NAMES[system]}, {ranks} ranks, round {round_number}: {status}; {last} ({log})"


def value(found, system, ranks, operation, size, suffix):
    algorithm = "/" + TREES.get(operation, "none") if system == "tree" else ""
    place = "" if operation == "barrier" else f"/{size}"
    name = f"{PREFIXES.get(system, '')}{operation}{algorithm}{place}{suffix}"
    values = found.get(f"{SETS[system]}{ranks}", {}).get(name, {}).get("us")
    return statistics.median(values) if values else None


def make_cells(found, options):
    cells = []
    for way in options.ways:
        for ranks in options.ranks:
            for operation in options.operations:
                for size in options.sizes if operation != "barrier" else [0]:
                    times = {name: value(found, name, ranks, operation, size, WAYS[way])
                             for name in NAMES}
                    ours = ("embedded", "daemon", "component", "component_daemon")
                    if all(times[name] is None for name in ours):
                        continue
                    cells.append(
                        {"way": way, "ranks": ranks, "operation": operation, "octets": size,
                         "us": times})
    return cells


def ratio(cell, system, reference="openmpi"):
    mine, other = cell["us"][system], cell["us"][reference]
    return mine / other if mine and other else None


def verdicts(cells):
    """Returns for each budget how many cells meet it, and the worst ones."""
    out = []
    for way in dict.fromkeys(cell["way"] for cell in cells):
        for system, limit in BUDGETS.items():
            ratios = sorted(((ratio(c, system), c) for c in cells if c["way"] == way
                             and ratio(c, system)), key=lambda x: -x[0])
            if not ratios:
                continue
            met = sum(r <= limit for r, _ in ratios)
            over = [f"{c['operation']} {c['octets']} B on {c['ranks']}: {r:.2f}" for r, c in ratios
                    if r > limit]
            out.append({"way": way, "system": system, "limit": limit, "met": met, "of": len(ratios),
                        "median": statistics.median(r for r, _ in ratios), "over": over})
    return out


def compared_with_own(cells):
    """Returns a line on the component's cost compared with coll.h; empty if one was not measured.
    """
    both = [(c, c["us"]["component"], c["us"]["embedded"]) for c in cells
            if c["us"]["component"] and c["us"]["embedded"]]
    if not both:
        return ""
    over = [f"{c['operation']} {c['octets']} B on {c['ranks']}: {mine / own:.2f}"
            for c, mine, own in both if mine > max(OWN_FACTOR * own, own + OWN_MICROSECONDS)]
    median = statistics.median(mine / own for _, mine, own in both)
    return (f"component ≤ {OWN_FACTOR:g}× coll.h or + {OWN_MICROSECONDS:g} µs in "
            f"{len(both) - len(over)} of {len(both)} cells, median {median:.2f}"
            + (f"; over: {', '.join(over)}" if over else "") + "\n")


def table_of(cells):
    lines = [["way", "ranks", "operation", "octets", *(f"{NAMES[n]} µs" for n in NAMES),
              "embedded/Open MPI", "daemon/Open MPI",
              "embedded/MPICH", "embedded/tree", "component/Open MPI", "component/embedded",
              "component daemons/Open MPI"]]
    show = lambda x: f"{x:.2f}" if x else "–"
    for c in cells:
        lines.append([c["way"], str(c["ranks"]), c["operation"], str(c["octets"]),
                      *(report.cell(c["us"][n]) for n in NAMES),
                      show(ratio(c, "embedded")), show(ratio(c, "daemon")),
                      show(ratio(c, "embedded", "mpich")),
                      show(ratio(c, "embedded", "tree")), show(ratio(c, "component")),
                      show(ratio(c, "component", "embedded")),
                      show(ratio(c, "component_daemon"))])
    # Columns of systems that were not measured are left out.
    kept = [i for i in range(len(lines[0]))
            if i < 4 or any(line[i] != "–" for line in lines[1:])]
    lines = [[line[i] for i in kept] for line in lines]
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join("  ".join(c.rjust(w) for c, w in zip(line, widths)).rstrip()
                     for line in lines) + "\n"


def plots(folder, found, ranks_list):
    for ranks in ranks_list:
        for operation in ("broadcast", "allgather", "allreduce", "alltoall"):
            curves = [(NAMES[s], f"{SETS[s]}{ranks}",
                       f"{PREFIXES.get(s, '')}{operation}/{report.SIZE}", "us") for s in SYSTEMS]
            if operation in TREES:
                curves.append(("tree over unicast", f"{SETS['tree']}{ranks}",
                               f"{operation}/{TREES[operation]}/{report.SIZE}", "us"))
            report.plot(folder, found, f"{operation}{ranks}", f"{operation} on {ranks} ranks",
                        "µs", curves)


def parse():
    words = lambda kind: lambda text: [kind(word) for word in text.split(",")]
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=words(int), default=[2, 4, 8])
    parser.add_argument("--sizes", type=words(int), default=[8, 1024, 16384, 65536, 1048576])
    parser.add_argument("--operations", type=words(str), default=OPERATIONS)
    parser.add_argument("--ways", type=words(str),
                        help="of stream, single, skewed (collective_bench.cc)")
    parser.add_argument("--systems", type=words(str), help="of " + ", ".join(SYSTEMS))
    parser.add_argument("--mpi", action="store_true",
                        help="systems openmpi, embedded and component, way single")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--wire", choices=["loopback", "namespaces"], default="loopback",
                        help="what the MPIs' TCP crosses")
    parser.add_argument("--program-seconds", type=float, default=180,
                        help="most that one program may take")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build/compare")
    parser.add_argument("--keep", action="store_true", help="add to the results that are there")
    options = parser.parse_args()
    of_mpi = ["openmpi", "embedded", "component"]
    of_others = [name for name in SYSTEMS if not name.startswith("component")]
    options.systems = options.systems or (of_mpi if options.mpi else of_others)
    options.ways = options.ways or (["single"] if options.mpi else ["stream", "single"])
    return options


def main():
    options = parse()
    options.folder = options.folder.resolve()
    if not options.keep:
        shutil.rmtree(options.folder, ignore_errors=True)
    for name in ("raw", "log"):
        (options.folder / name).mkdir(parents=True, exist_ok=True)
    first = len(list((options.folder / "raw").glob("*.json"))) + 1
    systems = [name for name in installed(options.build) if name in options.systems]
    names = "|".join(options.operations)
    trees = "|".join(sorted(set(TREES.values())))
    sizes = "|".join(map(str, options.sizes))
    ways = "|".join(WAYS[way] for way in options.ways)
    filter_text = f"/({names})(/({trees}))?(/({sizes}))?({ways})/iterations"
    problems = []
    for round_number in range(first, first + options.rounds):
        for ranks in options.ranks:
            for system in systems:
                if options.wire == "namespaces" and system in ("openmpi", "mpich"):
                    with Namespaces(ranks, options.folder) as namespaces:
                        problem = run(system, ranks, options, round_number, filter_text, namespaces)
                else:
                    problem = run(system, ranks, options, round_number, filter_text, None)
                problems += [problem] if problem else []
    found, unread = report.read_raw(options.folder / "raw")
    cells = make_cells(found, options)
    if not cells:
        sys.exit("error: nothing was measured\n" + "\n".join(problems))
    judged = verdicts(cells)
    table = table_of(cells)
    for v in judged:
        table += (f"{v['way']}: {v['system']} ≤ {v['limit']:g}× Open MPI "
                  f"in {v['met']} of {v['of']} cells, median {v['median']:.2f}"
                  + (f"; over: {', '.join(v['over'])}" if v["over"] else "") + "\n")
    table += compared_with_own(cells)
    (options.folder / "compare.txt").write_text(table)
    result = {"wire": options.wire, "rounds": options.rounds, "cells": cells, "budgets": judged,
              "problems": problems + unread}
    (options.folder / "compare.json").write_text(json.dumps(result, indent=1, ensure_ascii=False)
                                                 + "\n")
    plots(options.folder, found, options.ranks)
    print(table, end="")
    for problem in problems + unread:
        print(f"note: {problem}")


if __name__ == "__main__":
    main()
