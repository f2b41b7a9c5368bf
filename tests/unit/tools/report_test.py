#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests of tools/report.py: its table, its page of results, and what a cut result leaves."""
import importlib.util
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[3] / "tools" / "report.py"
RESULTS = SCRIPT.parents[1] / "docs/benchmarks/RESULTS.md"
PLOTS = ("latency.svg", "collectives.svg")
COUNTS = ("instructions   budget  what\n"
          "      1321.0     1325  two engines, 8 B one way\n"
          "       900.0      600  a receiver's share: FAILED, more than 3% above; see what grew\n"
          "1 passed, 1 failed\n")


def result(**microseconds):
    """Returns a result of Google Benchmark: name of a benchmark (__ for /) and its time."""
    return json.dumps({"benchmarks": [
        {"name": name.replace("__", "/"), "real_time": time, "time_unit": "us"}
        for name, time in microseconds.items()]})


class Report(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        (self.root / "raw").mkdir()

    def report(self, *options, **raw):
        for name, text in raw.items():
            (self.root / "raw" / f"{name.replace('__', '.')}.json").write_text(text)
        page = self.root / "page.md"
        done = subprocess.run([sys.executable, SCRIPT, self.root, "--results", page,
                               *options],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout, page.read_text(encoding="utf-8")

    def three_rounds(self, ours, ucx):
        raw = {}
        for number, (one, other) in enumerate(zip(ours, ucx), 1):
            raw[f"embedded_shm__{number}"] = result(ulc__embedded__one_way__8=one)
            raw[f"ucx__{number}"] = result(ucx__posix__one_way__8=other)
        return self.report(**raw)

    def row_of(self, page):
        return next(line for line in page.splitlines() if "one way, 8 B, shared" in line)

    def test_medians_of_the_rounds_and_their_ratio(self):
        table, page = self.three_rounds([0.5, 0.2, 9], [0.25, 0.1, 7])
        self.assertEqual(self.row_of(page), "| embedded, one way, 8 B, shared memory | 0.5 µs | "
                                            "UCX, shared memory | 0.25 µs | 2.00 | <= 3× | yes |")
        self.assertRegex(table, r"one way, 8 B, shared memory +0\.5 .* 2\.00 +<= 3× +yes")

    def test_a_missed_budget_is_shown_as_missed(self):
        _, page = self.three_rounds([0.5, 0.5, 0.5], [0.1, 0.1, 0.1])
        self.assertIn("| 5.00 | <= 3× | no |", self.row_of(page))

    def test_a_figure_without_result_is_not_measured(self):
        _, page = self.report(ucx__1=result(ucx__posix__one_way__8=0.1))
        self.assertIn("| not measured | UCX, shared memory | 0.1 µs |  |", self.row_of(page))

    def test_the_first_table_has_only_rows_with_their_reference(self):
        both = {"embedded_shm__1": result(ulc__embedded__one_way__8=0.5),
                "ucx__1": result(ucx__posix__one_way__8=0.1),
                "daemon__1": result(ulc__daemon__one_way__8=5)}
        table, _ = self.report("--measured", **both)
        self.assertRegex(table, r"one way, 8 B, shared memory +0\.5 ")
        self.assertNotRegex(table, "daemon|not measured|–")
        table, _ = self.report(**both)
        self.assertRegex(table, "two daemons, one way, 8 B")
        self.assertIn("not measured", table)

    def test_a_cut_result_is_listed(self):
        _, page = self.report(ucx__1=result(ucx__posix__one_way__8=0.1), embedded_shm__1="{")
        self.assertIn("- embedded_shm.1.json is no complete result", page)

    def test_counts_and_what_was_left_out_follow(self):
        (self.root / "instructions.txt").write_text(COUNTS)
        (self.root / "left_out.txt").write_text("Open MPI: not installed\n")
        _, page = self.report(ucx__1=result(ucx__posix__one_way__8=0.1))
        self.assertIn("| two engines, 8 B one way | 1,321 | 1,325 |", page)
        self.assertIn("| a receiver's share | 900 | 600 |", page)
        self.assertIn("- Open MPI: not installed", page)

    def test_the_page_names_commit_and_machine(self):
        _, page = self.report(ucx__1=result(ucx__posix__one_way__8=0.1))
        self.assertTrue(page.startswith(
            "# Results\n<!-- written by: tools/quickstart --results FILE -->\n"))
        self.assertRegex(page, r"\nCommit .+, 20\d\d-\d\d-\d\d\. \d+ processors \(.+\), Linux ")

    def test_a_page_gives_its_figures_back(self):
        spec = importlib.util.spec_from_file_location("report", SCRIPT)
        report = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(report)
        _, page = self.report(
            embedded_shm__1=result(ulc__embedded__one_way__8=0.5),
            ucx__1=result(ucx__posix__one_way__8=0.25),
            embedded_stream__1=json.dumps({"benchmarks": [
                {"name": "stream/65536", "real_time": 1, "time_unit": "us",
                 "bytes_per_second": 8e9}]}))
        found, source = report.read_page(page)
        self.assertEqual(found, {
            "embedded_shm": {"one_way/8": {"us": [0.5]}},
            "ucx": {"ucx/posix/one_way/8": {"us": [0.25]}},
            "embedded_stream": {"stream/65536": {"bytes_per_second": [8e9]}}})
        self.assertRegex(source, r"^Commit .*\. \d+ processors \(.+\)$")

    @unittest.skipUnless(shutil.which("gnuplot"), "no gnuplot: tools/setup build brings it")
    def test_plots_of_readme_have_each_system_of_the_page(self):
        page = self.root / "page.md"
        shutil.copy(RESULTS, page)
        subprocess.run([sys.executable, SCRIPT, "--plots", page], check=True)
        latency, collectives = ((self.root / name).read_text("utf-8") for name in PLOTS)
        for system in ("ULC, shared memory", "UCX, shared memory", "kernel TCP, polled, bridge",
                       "Open MPI over TCP, bridge"):
            self.assertIn(f">{system}<", latency)
        for text in ("ULC, embedded", "ULC, daemons", "Open MPI over TCP", "barrier",
                     "broadcast 64 KiB", "allreduce 8 B"):
            self.assertIn(f">{text}<", collectives)

    def test_plots_of_the_repository_are_of_its_page(self):
        commit = re.search(r"^Commit \w+, [\d-]+\.", RESULTS.read_text("utf-8"), re.M)[0]
        for name in PLOTS:
            self.assertIn(f">{commit} ", (RESULTS.parent / name).read_text("utf-8"),
                          "run: tools/report.py --plots docs/benchmarks/RESULTS.md")


if __name__ == "__main__":
    unittest.main()
