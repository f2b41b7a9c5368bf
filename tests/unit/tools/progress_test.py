#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The line of progress of tools/shared/progress.py and of tools/common.sh: the same on a terminal,
and nothing where there is none.
"""
import os
import pathlib
import pty
import subprocess
import sys
import unittest

TOOLS = pathlib.Path(__file__).resolve().parents[3] / "tools"
sys.path.insert(0, str(TOOLS / "shared"))
import progress  # noqa: E402

CLEARED = "\r\033[K"


def output_of(words, terminal):
    """What the command writes to a terminal, or to a pipe."""
    env = os.environ | {"TERM": "xterm", "PYTHONPATH": str(TOOLS / "shared")}
    if not terminal:
        return subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout
    ours, its = pty.openpty()
    with subprocess.Popen(words, env=env, stdin=its, stdout=its, stderr=its) as process:
        os.close(its)
        text = b""
        try:
            while piece := os.read(ours, 4096):
                text += piece
        except OSError:  # the last writer has ended
            pass
        os.close(ours)
        assert process.wait() == 0, text
    return text.decode().replace("\r\n", "\n")


def shell(text):
    return ["bash", "-c", f'. "{TOOLS}/common.sh"\n{text}']


def python(text):
    return [sys.executable, "-c", f"from progress import Progress\n{text}"]


class Line(unittest.TestCase):
    def test_bar_count_percentage_and_time_left(self):
        self.assertEqual(progress.line_of(5, 20, 60, "mutants"),
                         "  [#####               ] 5/20 25 %, 3:00 left mutants")

    def test_no_estimate_from_a_moment(self):
        self.assertEqual(progress.line_of(0, 20, 60), "  [                    ] 0/20 0 %")
        self.assertNotIn("left", progress.line_of(1, 20, 2))

    def test_more_than_all_is_all(self):
        self.assertEqual(progress.line_of(9, 3, 1), "  [####################] 3/3 100 %")

    def test_a_line_fits_a_terminal(self):
        self.assertEqual(len(progress.line_of(1, 2, 9, "x" * 200)), progress.COLUMNS)

    def test_times(self):
        self.assertEqual([progress.clock_of(s) for s in (7, 62, 3723)],
                         ["0:07", "1:02", "1:02:03"])
        self.assertEqual(output_of(shell("clock_of 7; echo; clock_of 62; echo; clock_of 3723"),
                                   False).split(), ["0:07", "1:02", "1:02:03"])


class Terminal(unittest.TestCase):
    def test_the_line_is_rewritten_and_removed(self):
        first = CLEARED + progress.line_of(1, 4, 0, "one")
        second = CLEARED + progress.line_of(3, 4, 0, "two")
        self.assertEqual(output_of(shell("progress 1 4 one; progress 3 4 two; progress_end"), True),
                         first + second + CLEARED)
        self.assertEqual(output_of(python(
            "with Progress(4) as bar: bar.show(1, 'one'); bar.show(3, 'two')"), True),
            first + second + CLEARED)

    def test_scripts_and_python_estimate_alike(self):
        text = output_of(shell("SECONDS=60; progress_began=0; progress 5 20 x"), True)
        self.assertIn(text, [CLEARED + progress.line_of(5, 20, took, "x")
                             for took in range(60, 70)])  # on a busy machine

    def test_lines_that_stay_replace_the_bar(self):
        text = output_of(python("bar = Progress(2); bar.show(1); bar.print('ok 1')"), True)
        self.assertTrue(text.endswith(CLEARED + "ok 1\n"), text)

    def test_the_counts_of_ninja_and_meson_are_found(self):
        for line in ("[3/12] Compiling", " 3/12 unit / a", "3/12 unit"):
            self.assertIn("3/12 25 %", output_of(shell(f"progress_of_line '{line}'"), True))
        self.assertRegex(output_of(shell("progress_of_line 'Setting up 7/8'"), True),
                         r"\[0:0\d\] Setting up 7/8")

    def test_a_quiet_command_shows_its_progress(self):
        log = "$(mktemp)"
        text = output_of(shell(f"quietly {log} sh -c 'echo [1/2] first; sleep 0.5'"), True)
        self.assertIn("1/2 50 % first", text)
        self.assertTrue(text.endswith(CLEARED), text)


class NoTerminal(unittest.TestCase):
    def test_nothing_is_written(self):
        self.assertEqual(output_of(shell("progress 1 4 one && exit 9; progress_end"), False), "")
        self.assertEqual(output_of(python(
            "with Progress(4) as bar: assert not bar.show(1, 'one')"), False), "")
        self.assertEqual(output_of(python("Progress(1).print('ok')"), False), "ok\n")

    def test_a_quiet_command_is_quiet(self):
        self.assertEqual(output_of(shell("quietly $(mktemp) sh -c 'echo [1/2]; sleep 0.5'"),
                                   False), "")


if __name__ == "__main__":
    unittest.main()
