# SPDX-License-Identifier: BSD-3-Clause
"""Compares two rates on a machine that others may use: runs take turns, medians are compared, and a
ratio that is missed while other processes took much of the cores is not judged."""
import os
import resource
import statistics
import time

RUNS = 3
ATTEMPTS = 3
OTHERS_MAX = 0.5  # cores; with more, a missed ratio proves nothing


def cores_seconds():
    """Returns the seconds that all cores have worked, and those that our ended children used."""
    with open("/proc/stat", encoding="ascii") as stat:
        user, nice, system, _idle, _iowait, irq, softirq, steal = (
            int(word) for word in stat.readline().split()[1:9])
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    worked = (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
    return worked, children.ru_utime + children.ru_stime


def judge(what, one, two, least):
    """Returns "passed" if two() gives at least `least` times the bytes a second of one(), else
    "failed" or "not judged"."""
    others = float("inf")
    for _attempt in range(ATTEMPTS):
        begin, (all_before, own_before) = time.monotonic(), cores_seconds()
        rates = [(one(), two()) for _run in range(RUNS)]
        all_after, own_after = cores_seconds()
        foreign = all_after - all_before - (own_after - own_before)
        others = min(others, foreign / (time.monotonic() - begin))
        first, second = (statistics.median(column) for column in zip(*rates))
        print(f"{what}: {first / 1e6:.2f} and {second / 1e6:.2f} MB/s: {second / first:.2f} times "
              f"(at least {least}); others had {others:.1f} cores", flush=True)
        if second >= least * first:
            return "passed"
    return "not judged" if others > OTHERS_MAX else "failed"
