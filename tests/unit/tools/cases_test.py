#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Each case of a program of unit tests runs in exactly one test of meson, which names its files. A
test of files that are not there fails (tests/unit/main.cc).

Usage: cases_test.py BUILD
"""
import collections
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import unittest

BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
UNIT = str(BUILD / "tests/unit/unit_")


def cases_of(command):
    """Returns the cases that the program would run."""
    listed = subprocess.run([*command, "--gtest_list_tests"], capture_output=True, text=True,
                            check=True, cwd=BUILD).stdout
    cases, suite = [], ""
    for line in listed.splitlines():
        if line.startswith("  "):
            cases.append(suite + line.split()[0])
        elif line.split() and line.split()[0].endswith("."):
            suite = line.split()[0]
    return cases


class Cases(unittest.TestCase):
    def test_each_case_runs_in_one_test(self):
        tests = json.loads((BUILD / "meson-info/intro-tests.json").read_text())
        tests_of = collections.defaultdict(list)
        for test in tests:
            if test["cmd"][0].startswith(UNIT) and pathlib.Path(test["cmd"][0]).is_file():
                tests_of[test["cmd"][0]].append(test["cmd"])
        self.assertGreater(len(tests_of), 0)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for program, commands in tests_of.items():
                parts = list(pool.map(cases_of, commands))
                self.assertNotIn([], parts, f"a test of {program} runs no case")
                self.assertEqual(sorted(cases_of([program])), sorted(sum(parts, [])))

    def test_files_without_a_test_fail(self):
        done = subprocess.run([UNIT + "wire", "--files=wire/none_test.cc"], capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("no test of this program is in such files", done.stderr)

    def test_a_filter_leaves_out_more(self):
        files = "--files=wire/job_test.cc"
        all_cases = cases_of([UNIT + "wire", files])
        one = all_cases[0]
        self.assertEqual(cases_of([UNIT + "wire", files, f"--gtest_filter={one}"]), [one])
        self.assertEqual(cases_of([UNIT + "wire", files, f"--gtest_filter=-{one}"]), all_cases[1:])
        self.assertEqual(cases_of([UNIT + "wire", files, "--gtest_filter=WireParse.*"]), [])


if __name__ == "__main__":
    unittest.main()
