#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes one table, plots and one JSON file of Google Benchmark results.

    tools/report.py FOLDER [--json FILE] [--results FILE]
    tools/report.py --plots FILE

FOLDER/raw holds <set>.<round>.json, one for each repetition of a program: <set> names the
measurement and its wiring ("embedded", "daemon", "kernel", …). Repetitions of a figure and of its
reference were taken in turns in one run, so their medians can be compared. Writes
FOLDER/figures.json, FOLDER/table.txt and FOLDER/*.svg (if gnuplot is there), and prints the table.
--results also writes it as a page in Markdown, with the commit, the machine, the instructions a
message (FOLDER/instructions.txt) and what was left out (FOLDER/left_out.txt). Next to the page it
draws the plots of README, latency.svg and collectives.svg. --plots draws these two from the figures
of such a page.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import shutil
import statistics
import subprocess
import sys

# A figure: text, (set, benchmark, metric), references in order of preference [(text, (set,
# benchmark, metric), budget or None)], absolute budget or None. Metrics: "us" is the time, others
# are counters. A ratio is figure / reference. A budget is ("<=" or ">=", limit); None: shown only.
# Absolute limits are in the unit that is printed.
FIGURES = [
    ("embedded, one way, 8 B, memif", ("embedded", "one_way/8", "us"),
     [("bare DPDK echo, memif", ("dpdk", "dpdk/memif/one_way/8", "us"), ("<=", 2))], None),
    *((f"embedded, one way, {text}, shared memory", ("embedded_shm", f"one_way/{size}", "us"),
       [("UCX, shared memory", ("ucx", f"ucx/posix/one_way/{size}", "us"), limit)], None)
      for text, size, limit in (("8 B", 8, ("<=", 3)), ("64 KiB", 65536, None))),
    ("embedded, one way, 8 B, af_packet on veth", ("embedded_veth", "one_way/8", "us"),
     [("kernel UDP, polled, same veth", ("kernel", "kernel/udp/polled/veth/one_way/8", "us"),
       ("<=", 0.7))],
     None),
    ("daemon, one way, 8 B, one engine on two joined nets, one thread",
     ("one_engine", "daemon/two_nets_joined/one_thread/one_way/8", "us"),
     [("kernel UDP, polled, veth", ("one_engine", "kernel/udp/polled/veth/one_way/8", "us"),
       ("<=", 0.4)),
      ("kernel UDP, polled, loopback",
       ("one_engine", "kernel/udp/polled/loopback/one_way/8", "us"), None)], None),
    ("daemon, one way, 8 B, two endpoints of one engine, one thread",
     ("one_engine", "daemon/no_wire/one_thread/one_way/8", "us"), [], ("<=", 0.5)),
    ("two daemons, one way, 8 B, shared memory", ("daemon", "one_way/8", "us"),
     [("kernel UDP, polled, veth", ("kernel", "kernel/udp/polled/veth/one_way/8", "us"), None),
      ("kernel UDP, polled, loopback", ("kernel", "kernel/udp/polled/loopback/one_way/8", "us"),
       None)], None),
    ("two daemons, one way, 64 KiB, shared memory", ("daemon", "one_way/65536", "us"),
     [("kernel TCP, polled, veth", ("kernel", "kernel/tcp/polled/veth/one_way/65536", "us"), None),
      ("kernel TCP, polled, loopback",
       ("kernel", "kernel/tcp/polled/loopback/one_way/65536", "us"), None)], None),
    ("two daemons, one way, 8 B", ("daemon", "one_way/8", "us"),
     [("Open MPI over TCP", ("mpi", "mpi/one_way/8", "us"), None)], None),
    ("the engine's share of that, 8 B", ("engine", "BM_local_one_way/8", "ns_per_item"), [],
     ("<=", 500)),
    ("messages a second and core, 64 B", ("engine", "BM_messages_per_core/64", "items_per_second"),
     [],
     (">=", 15)),
    ("embedded, stream of 64 KiB messages", ("embedded_stream", "stream/65536", "bytes_per_second"),
     [("kernel TCP, polled, veth",
       ("kernel", "kernel/tcp/polled/veth/stream/65536", "bytes_per_second"), None),
      ("kernel TCP, polled, loopback", ("kernel", "kernel/tcp/polled/loopback/stream/65536",
                                        "bytes_per_second"), None)], None),
    ("embedded, stream of 64 KiB messages", ("embedded_stream", "stream/65536", "bytes_per_second"),
     [("memcpy into and out of a ring of both processes",
       ("copy", "copy/pipeline/65536", "bytes_per_second"), (">=", 0.7))], None),
    ("embedded, stream of 64 KiB messages", ("embedded_stream", "stream/65536", "bytes_per_second"),
     [("memcpy out of another process's mapping", ("copy", "copy/stream/65536",
                                                   "bytes_per_second"), None)], None),
    *((f"{name}, 4 nodes, {wired}", (of_set, benchmark, "us"),
       [("Open MPI over TCP", ("mpi_collective4", f"mpi/{benchmark}", "us"), ("<=", limit))], None)
      for wired, of_set, limit in (("embedded", "embedded_collective4", 1),
                                   ("daemons", "collective4", 3))
      for name, benchmark in (("barrier", "barrier"), ("broadcast 64 KiB", "broadcast/65536"),
                              ("allgather 1 KiB", "allgather/1024"),
                              ("allreduce 8 B", "allreduce/8"),
                              ("alltoall 1 KiB", "alltoall/1024"))),
    *((f"{name}, 4 nodes on these cores, embedded", ("embedded_collective4", benchmark, "us"),
       [], ("<=", 5))
      for name, benchmark in (("barrier", "barrier"), ("allreduce 8 B", "allreduce/8"))),
    ("barrier, 8 nodes", ("collective8", "barrier", "us"),
     [("Open MPI over TCP", ("mpi_collective8", "mpi/barrier", "us"), None)], ("<=", 200)),
]

# The kernel's Ethernet, `ulc run --wire bridge`: text, set, the reference's text and set, {octets:
# budget or None}. Each is one way, over namespaces of the same shape, in the same round.
TCP, MPI = "kernel TCP, polled", "Open MPI over TCP"
KERNEL = "kernel/tcp/polled/bridge"
BRIDGE = [
    ("bridge", "bridge", MPI, "bridge_mpi", {8: 0.8, 1024: 1, 65536: None}),
    ("bridge", "bridge", TCP, "bridge_kernel", {8: 0.8, 65536: 1.5}),
    ("bridge", "bridge", f"{TCP}, no segmentation offload", "bridge_single", {65536: 1}),
    ("bridge, MTU 9000", "bridge_9000", TCP, "bridge_kernel_9000", {65536: 1.5}),
    ("bridge of 1 Gb/s", "bridge_1gbit", MPI, "bridge_mpi_1gbit", {8: 0.8, 1024: 1, 65536: 1}),
]


def size_text(octets):
    return f"{octets} B" if octets < 1024 else f"{octets >> 10} KiB"


FIGURES += [
    (f"embedded, one way, {size_text(octets)}, {wire}", (of_set, f"one_way/{octets}", "us"),
     [(beside, (other, f"{'mpi' if 'mpi' in other else KERNEL}/one_way/{octets}", "us"),
       limit and ("<=", limit))], None)
    for wire, of_set, beside, other, limits in BRIDGE for octets, limit in limits.items()
]

FIGURES += [
    (f"{text} (GAMMA {section}), embedded", ("models2", benchmark, metric), [], None)
    for text, section, benchmark, metric in [
        ("half-power point", "§2.1.3", "half_power", "half_power_octets"),
        ("asymptotic bandwidth, end to end", "§2.1.2", "half_power", "asymptotic_MBps"),
        ("LogP, 8 B: L, 0 where the next figure hides it", "§2.2", "logp/8", "L_us"),
        ("LogP, 8 B: overlap of o_s and o_r with the way", "§2.2", "logp/8", "overlap_us"),
        ("LogP, 8 B: o_s", "§2.2", "logp/8", "os_us"),
        ("LogP, 8 B: o_r", "§2.2", "logp/8", "or_us"), ("LogP, 8 B: g", "§2.2", "logp/8", "g_us"),
        ("BSP, 2 ranks: l", "§2.3", "bsp", "l_us"),
        ("BSP, 2 ranks: g, an octet", "§2.3", "bsp", "g_ns_per_octet")]]

# A plot: file, title, unit, curves (text, set, pattern with the size in a group, metric).
SIZE = r"(\d+)"
PLOTS = [
    ("latency", "One-way latency", "µs", [
        ("bare DPDK, memif", "dpdk", "dpdk/memif/one_way/" + SIZE, "us"),
        ("ULC embedded, memif", "embedded", "one_way/" + SIZE, "us"),
        ("ULC embedded, shared memory", "embedded_shm", "one_way/" + SIZE, "us"),
        ("ULC embedded, af_packet on veth", "embedded_veth", "one_way/" + SIZE, "us"),
        ("ULC, two daemons, shared memory", "daemon", "one_way/" + SIZE, "us"),
        ("kernel UDP, polled, veth", "kernel", "kernel/udp/polled/veth/one_way/" + SIZE, "us"),
        ("kernel TCP, polled, veth", "kernel", "kernel/tcp/polled/veth/one_way/" + SIZE, "us"),
        ("Open MPI, TCP", "mpi", "mpi/one_way/" + SIZE, "us")]),
    ("throughput", "Throughput of a stream of messages", "MB/s", [
        ("ULC embedded, shared memory", "embedded_stream", "stream/" + SIZE, "bytes_per_second"),
        ("ULC, two daemons, shared memory", "daemon_stream", "stream/" + SIZE, "bytes_per_second"),
        ("kernel TCP, polled, veth", "kernel", "kernel/tcp/polled/veth/stream/" + SIZE,
         "bytes_per_second"),
        ("Open MPI, TCP", "mpi", "mpi/stream/" + SIZE, "bytes_per_second")]),
    ("collectives", "Collectives on 4 nodes", "µs", [
        ("ULC broadcast", "collective4", "broadcast/" + SIZE, "us"),
        ("ULC allgather", "collective4", "allgather/" + SIZE, "us"),
        ("Open MPI (TCP) broadcast", "mpi_collective4", "mpi/broadcast/" + SIZE, "us"),
        ("Open MPI (TCP) allgather", "mpi_collective4", "mpi/allgather/" + SIZE, "us")]),
]
PLOTS.append(("models_throughput", "Throughput, embedded (GAMMA §2.1.3)", "MB/s", [
    (f"{side.replace('_', ' ')}, {technique}", "models2", f"{side}/{technique}/{SIZE}",
     "bytes_per_second")
    for side, techniques in (("end_to_end", ("single", "burst")),
                             ("sender_side", ("single", "burst", "stream")),
                             ("receiver_side", ("single", "burst", "stream")))
    for technique in techniques]))
# The same over the number of ranks N, from the sets models<N>: file, title, unit, metric of
# collective/<operation>.
RANK_PLOTS = [("models_latency", "L(N) of collectives, embedded (GAMMA §2.4)", "µs", "L_us"),
              ("models_bandwidth", "B(N) of collectives, embedded (GAMMA §2.4)", "MB/s", "B_MBps"),
              ("models_aggregate", "Aggregate bandwidth of collectives, embedded (GAMMA §2.4)",
               "MB/s", "BA_MBps")]
# The plots of README, each system next to its strongest peers. Over the size, as PLOTS; and bars of
# the operations: text and set for each system, and the benchmark of each operation.
README_LATENCY = [
    ("ULC, shared memory", "embedded_shm", "one_way/" + SIZE, "us"),
    ("UCX, shared memory", "ucx", "ucx/posix/one_way/" + SIZE, "us"),
    ("Open MPI, shared memory", "mpi_shm", "mpi/one_way/" + SIZE, "us"),
    ("ULC, kernel's bridge", "bridge", "one_way/" + SIZE, "us"),
    ("kernel TCP, polled, bridge", "bridge_kernel", KERNEL + "/one_way/" + SIZE, "us"),
    ("Open MPI over TCP, bridge", "bridge_mpi", "mpi/one_way/" + SIZE, "us")]
README_COLLECTIVES = [
    ("ULC, embedded", "embedded_collective4", ""), ("ULC, daemons", "collective4", ""),
    ("Open MPI, shared memory", "mpi_shm_collective4", "mpi/"),
    ("Open MPI over TCP", "mpi_collective4", "mpi/")]
README_OPERATIONS = [("barrier", "barrier"), ("broadcast 64 KiB", "broadcast/65536"),
                     ("allgather 1 KiB", "allgather/1024"), ("allreduce 8 B", "allreduce/8"),
                     ("alltoall 1 KiB", "alltoall/1024")]
# Keys of each run of Google Benchmark besides the counters.
RUN_KEYS = {"family_index", "per_family_instance_index", "repetitions", "repetition_index",
            "threads", "iterations", "real_time",
            "cpu_time", "bytes_per_second", "items_per_second"}
MICROSECONDS = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}
UNITS = {"us": "µs", "ns_per_item": "ns", "items_per_second": "M/s", "bytes_per_second": "MB/s",
         "half_power_octets": "octets", "asymptotic_MBps": "MB/s", "L_us": "µs",
         "os_us": "µs", "overlap_us": "µs", "or_us": "µs", "g_us": "µs", "l_us": "µs",
         "g_ns_per_octet": "ns"}
SCALES = {"items_per_second": 1e-6, "bytes_per_second": 1e-6}


def read_raw(folder):
    """Returns {set: {benchmark: {metric: [value of each repetition]}}} and the problems that were
    met."""
    found, problems = {}, []
    for path in sorted(folder.glob("*.json")):
        try:
            runs = json.loads(path.read_text())["benchmarks"]
        except (ValueError, KeyError):
            problems.append(f"{path.name} is no complete result: its program was cut off or failed")
            continue
        benchmarks = found.setdefault(path.name.split(".")[0], {})
        for run in runs:
            name = re.sub(r"/(iterations|min_time|repeats):[^/]*|/manual_time|/real_time", "",
                          run["name"])
            name = re.sub(r"^ulc/(embedded|daemon)/", "", name)
            if run.get("error_occurred"):
                problems.append(f"{path.name}: {name}: {run.get('error_message', 'failed')}")
                continue
            metrics = benchmarks.setdefault(name, {})
            metrics.setdefault("us", []).append(run["real_time"] * MICROSECONDS[run["time_unit"]])
            for metric in ("items_per_second", "bytes_per_second"):
                if metric in run:
                    metrics.setdefault(metric, []).append(run[metric])
            for metric, value in run.items():
                number = isinstance(value, (int, float)) and not isinstance(value, bool)
                if metric not in RUN_KEYS and number:
                    metrics.setdefault(metric, []).append(value)
            if run.get("items_per_second"):
                metrics.setdefault("ns_per_item", []).append(1e9 / run["items_per_second"])
    return found, problems


def median_of(found, key):
    of_set, benchmark, metric = key
    values = found.get(of_set, {}).get(benchmark, {}).get(metric)
    return statistics.median(values) if values else None


def met(budget, value):
    if budget is None or value is None:
        return None
    return value <= budget[1] if budget[0] == "<=" else value >= budget[1]


def make_rows(found):
    rows = []
    for text, key, references, absolute in FIGURES:
        value = median_of(found, key)
        row = {"figure": text, "value": value, "unit": UNITS[key[2]],
               "scale": SCALES.get(key[2], 1), "reference": None,
               "reference_value": None, "ratio": None, "budget": None, "met": None,
               "repetitions": len(found.get(key[0], {}).get(key[1], {}).get(key[2], []))}
        for name, reference, budget in references:
            other = median_of(found, reference)
            row["reference"] = row["reference"] or name
            if other is None:
                continue
            row.update(reference=name, reference_value=other)
            if value is not None:
                row["ratio"] = value / other
                row.update(budget=budget and f"{budget[0]} {budget[1]}×",
                           met=met(budget, row["ratio"]))
            break
        if absolute is not None:
            row["budget"] = f"{absolute[0]} {absolute[1]:g} {row['unit']}"
            row["met"] = met(absolute, value and value * row["scale"])
        rows.append(row)
    return rows


def cell(value):
    if value is None:
        return "–"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def table_of(rows):
    lines = [["figure", "value", "unit", "beside", "value", "ratio", "budget", "met"]]
    for row in rows:
        scaled = [None if v is None else v * row["scale"]
                  for v in (row["value"], row["reference_value"])]
        verdict = {None: "", True: "yes", False: "NO"}[row["met"]]
        lines.append([row["figure"], cell(scaled[0]) if row["value"] is not None
                      else "not measured", row["unit"],
                      row["reference"] or "", cell(scaled[1]) if row["reference"] else "",
                      f"{row['ratio']:.2f}" if row["ratio"] else "", row["budget"] or "", verdict])
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    right = {1, 4, 5}
    out = []
    for line in lines:
        out.append("  ".join(c.rjust(w) if i in right else c.ljust(w)
                             for i, (c, w) in enumerate(zip(line, widths))).rstrip())
    out.insert(1, "  ".join("-" * w for w in widths))
    return "\n".join(out) + "\n"


def lines_of(path):
    return path.read_text(encoding="utf-8").splitlines() if path.is_file() else []


def output_of(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False,
                              cwd=pathlib.Path(__file__).resolve().parent)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def processor():
    return next((line.split(":", 1)[1].strip() for line in lines_of(pathlib.Path("/proc/cpuinfo"))
                 if line.startswith("model name")), platform.machine())


def page_of(rows, folder, problems):
    """Returns the results as a page in Markdown."""
    commit = output_of("git", "rev-parse", "--short", "HEAD") or "no git history"
    if output_of("git", "status", "--porcelain", "--untracked-files=no"):
        commit += " with changes"
    dpdk = output_of("pkg-config", "--modversion", "libdpdk")
    compiler = output_of("c++", "--version").split("\n", maxsplit=1)[0]
    machine = [f"{os.cpu_count()} processors ({processor()})", f"Linux {platform.release()}"]
    machine += [f"DPDK {dpdk}"] if dpdk else []
    machine += [compiler] if compiler else []
    out = ["# Results", "<!-- written by: tools/quickstart --results FILE -->", "",
           "Written by `tools/quickstart --results FILE`; [METHOD](METHOD.md) says how the figures "
           "are taken, and what they can and cannot say.", "",
           f"Commit {commit}, {datetime.date.today()}. {', '.join(machine)}.", "",
           "## Times", "",
           "| figure | value | reference in the same run | value | ratio | budget | met |",
           "| --- | --- | --- | --- | --- | --- | --- |"]
    for row in rows:
        scaled = [None if v is None else v * row["scale"]
                  for v in (row["value"], row["reference_value"])]
        unit = row["unit"]
        values = [f"{cell(v)} {unit}" if v is not None else none
                  for v, none in zip(scaled, ("not measured", ""))]
        out.append("| " + " | ".join([
            row["figure"], values[0], row["reference"] or "", values[1],
            f"{row['ratio']:.2f}" if row["ratio"] else "", row["budget"] or "",
            {None: "", True: "yes", False: "no"}[row["met"]]]) + " |")
    counts = [re.fullmatch(r"\s*([\d.]+)\s+(\d+)  ([^:]*)(:.*)?", line)
              for line in lines_of(folder / "instructions.txt")]
    if any(counts):
        out += ["", "## Instructions", "", "A message, or a round, counted by callgrind; the test "
                "command holds each to 3 % above its budget.", "",
                "| what | instructions | budget |", "| --- | --- | --- |"]
        out += [f"| {count[3]} | {float(count[1]):,.0f} | {int(count[2]):,} |"
                for count in counts if count]
    missing = [line for line in lines_of(folder / "left_out.txt") if line] + problems
    if missing:
        out += ["", "## Left out", ""] + [f"- {line}" for line in missing]
    return "\n".join(out) + "\n"


def curve_of(found, of_set, pattern, metric):
    points = []
    for name in found.get(of_set, {}):
        match = re.fullmatch(pattern, name)
        value = match and median_of(found, (of_set, name, metric))
        if value:
            points.append((int(match.group(1)), value * SCALES.get(metric, 1)))
    return sorted(points)


def curves_over_ranks(found, metric):
    """Returns {operation: [(N, value)]} of the sets models<N>."""
    curves = {}
    for of_set, benchmarks in found.items():
        ranks = re.fullmatch(r"models(\d+)", of_set)
        for name in benchmarks if ranks else ():
            value = name.startswith("collective/") and median_of(found, (of_set, name, metric))
            if value and value > 0:
                curve = curves.setdefault(name.removeprefix("collective/"), [])
                curve.append((int(ranks.group(1)), value))
    return {name: sorted(points) for name, points in curves.items()}


def plot(folder, found, name, title, unit, curves):
    """Draws a plot over the size of a message; see draw()."""
    return draw(folder, name, title, "octets of a message", unit,
                {text: curve_of(found, *rest) for text, *rest in curves})


def draw(folder, name, title, across, unit, data):
    """Writes data and an SVG; returns the curves' points for the JSON file."""
    data = {text: points for text, points in data.items() if points}
    if not data or shutil.which("gnuplot") is None:
        return data
    blocks = "\n\n\n".join("\n".join(f"{x} {y}" for x, y in points) for points in data.values())
    (folder / f"{name}.dat").write_text(blocks + "\n")
    lines = ", ".join(f"'{name}.dat' index {i} using 1:2 with linespoints "
                      f"title '{text.replace('_', ' ')}'" for i, text in enumerate(data))
    script = (f"set terminal svg size 900,600 background 'white'\nset output '{name}.svg'\n"
              f"set title '{title}'\nset logscale xy\nset xlabel '{across}'\n"
              f"set ylabel '{unit}'\nset key left top\nset grid\n"
              f"plot {lines}\n")
    (folder / f"{name}.gnuplot").write_text(script)
    subprocess.run(["gnuplot", f"{name}.gnuplot"], cwd=folder, check=False)
    return data


def read_page(text):
    """Returns the figures of a page of results, as read_raw(), and where they are from."""
    found = {}

    def take(key, value):
        number = re.match(r"[\d.]+", value)
        if number:
            of_set, benchmark, metric = key
            found.setdefault(of_set, {}).setdefault(benchmark, {})[metric] = \
                [float(number[0]) / SCALES.get(metric, 1)]

    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    for figure, key, references, _ in FIGURES:
        for row in rows:
            if row[0] == figure:
                take(key, row[1])
            for name, reference, _ in references:
                if row[0] == figure and len(row) > 3 and row[2] == name:
                    take(reference, row[3])
    source = re.search(r"^(Commit .*?\. \d+ processors \(.*?\))", text, re.M)
    return found, source[1] if source else ""


def readme_plots(folder, found, source):
    """Draws the plots of README into the folder. Returns the names of the files."""
    latency = {text: curve_of(found, *rest) for text, *rest in README_LATENCY}
    latency = {text: points for text, points in latency.items() if points}
    systems = [(text, [median_of(found, (of_set, prefix + benchmark, "us"))
                       for _, benchmark in README_OPERATIONS])
               for text, of_set, prefix in README_COLLECTIVES]
    systems = [(text, values) for text, values in systems if any(values)]
    if not latency or not systems or shutil.which("gnuplot") is None:
        return []
    head = ("set terminal svg size 760,400 font 'sans,13' background 'white'\n"
            f"set label 1 '{source}' at graph 0,1.04 font ',10'\nset grid\n"
            "set ylabel 'µs'\nset key outside right top Left reverse\n")
    curves = ", ".join(f"'-' using 1:2 with linespoints pt {5 + i % 3 * 2} title \"{text}\""
                       for i, text in enumerate(latency))
    points = "".join("".join(f"{x} {y:.4g}\n" for x, y in curve) + "e\n"
                     for curve in latency.values())
    bars = ", ".join(f"'-' using 2:xtic(1) title \"{text}\"" for text, _ in systems)
    heights = "".join("".join(f"\"{name}\" {'?' if value is None else format(value, '.4g')}\n"
                              for (name, _), value in zip(README_OPERATIONS, values)) + "e\n"
                      for _, values in systems)
    scripts = {
        "latency.svg": "set title 'One-way latency of two processes' offset 0,1\n"
                       "set logscale xy\nset xlabel 'bytes of a message'\nset format x '%.0f'\n"
                       f"set xtics (8, 128, '1 Ki' 1024, '8 Ki' 8192, '64 Ki' 65536, "
                       f"'1 Mi' 1048576)\nplot {curves}\n{points}",
        "collectives.svg": "set title 'Collectives of 4 nodes' offset 0,1\n"
                           "set style data histogram\nset style fill solid 0.8\n"
                           "set datafile missing '?'\nset yrange [0:]\n"
                           f"set xtics rotate by -20\nplot {bars}\n{heights}"}
    for name, script in scripts.items():
        subprocess.run(["gnuplot"], input=f"set output '{name}'\n{head}{script}", text=True,
                       cwd=folder, check=True)
    return list(scripts)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, nargs="?")
    parser.add_argument("--json", type=pathlib.Path, help="a copy of figures.json")
    parser.add_argument("--measured", action="store_true", help="leave out what was not measured")
    parser.add_argument("--results", type=pathlib.Path, help="the table as a page in Markdown")
    parser.add_argument("--plots", type=pathlib.Path, metavar="FILE",
                        help="draw README's plots next to this page of results")
    options = parser.parse_args()
    if options.plots:
        if not readme_plots(options.plots.parent, *read_page(options.plots.read_text("utf-8"))):
            sys.exit("error: no gnuplot (tools/setup build brings it), or no figures in the page")
        return
    if options.folder is None:
        parser.error("which folder? for example build/figures")
    found, problems = read_raw(options.folder / "raw")
    if not found:
        sys.exit(f"error: no results in {options.folder / 'raw'}")
    rows = make_rows(found)
    if options.measured:
        rows = [row for row in rows if row["value"] is not None
                and (row["reference"] is None or row["reference_value"] is not None)]
    plots = {name: plot(options.folder, found, name, *rest) for name, *rest in PLOTS}
    for name, title, unit, metric in RANK_PLOTS:
        plots[name] = draw(options.folder, name, title, "ranks", unit,
                           curves_over_ranks(found, metric))
    table = table_of(rows)
    result = {"figures": [{k: v for k, v in row.items() if k != "scale"} | {
        "value": row["value"] and row["value"] * row["scale"],
        "reference_value": row["reference_value"] and row["reference_value"] * row["scale"]}
        for row in rows],
        "curves": plots, "problems": problems}
    text = json.dumps(result, indent=2, ensure_ascii=False) + "\n"
    (options.folder / "figures.json").write_text(text)
    (options.folder / "table.txt").write_text(table)
    if options.json:
        options.json.write_text(text)
    if options.results:
        page = page_of(rows, options.folder, problems)
        options.results.write_text(page, encoding="utf-8")
        readme_plots(options.results.parent, found, read_page(page)[1])
    print(table)
    for problem in problems:
        print(f"note: {problem}")


if __name__ == "__main__":
    main()
