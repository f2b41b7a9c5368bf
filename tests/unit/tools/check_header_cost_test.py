#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The check of header costs fails above its limit, and only there."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[3] / "tools/check_header_cost"
LINES = 20


class HeaderCost(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        entries = []
        for name in ("pmd_app", "libulc"):
            (self.root / name).mkdir()
            (self.root / name / "costly.h").write_text("int f();\n" * LINES)
            (self.root / name / "a.cc").write_text('#include "costly.h"\n')
            entries.append({"directory": str(self.root), "file": f"{name}/a.cc",
                            "command": f"c++ -MD -MQ a.o -MF a.d -o a.o -c {name}/a.cc"})
        (self.root / "compile_commands.json").write_text(json.dumps(entries))

    def check(self, limit):
        return subprocess.run([sys.executable, SCRIPT, "--root", self.root, "--limit", str(limit),
                               self.root], capture_output=True, text=True, check=False)

    def test_lines_of_headers_count(self):
        done = self.check(LINES - 1)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(f"pmd_app: {LINES} lines", done.stdout)
        self.assertIn("include less", done.stdout)

    def test_the_limit_itself_is_allowed(self):
        self.assertEqual(self.check(LINES).returncode, 0)

    def test_a_build_that_is_not_configured_is_named(self):
        (self.root / "compile_commands.json").unlink()
        self.assertIn("is not configured", self.check(LINES).stderr)


unittest.main()
