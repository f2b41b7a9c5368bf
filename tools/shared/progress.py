# SPDX-License-Identifier: BSD-3-Clause
"""A line of progress, rewritten in place on a terminal: bar, count, percentage and time left.

tools/common.sh has the same for scripts. Without a terminal nothing is written.
"""
import os
import sys
import time

BAR = 20  # columns
COLUMNS = 79
SURE_AFTER = 3  # seconds after which the time left is an estimate


def clock_of(seconds):
    """Seconds for a reader: 0:07, 1:02:03."""
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def line_of(done, total, took, what=""):
    """The line for `done` of `total` after `took` seconds; total 0: unknown."""
    if total <= 0:
        return f"  [{clock_of(took)}] {what}".rstrip()[:COLUMNS]
    done = min(done, total)
    bar = "#" * int(done * BAR / total)
    text = f"  [{bar:<{BAR}}] {done:.0f}/{total:.0f} {int(done * 100 / total)} %"
    if done > 0 and took >= SURE_AFTER:
        text += f", {clock_of(took * (total - done) / done)} left"
    return f"{text} {what}".rstrip()[:COLUMNS]


class Progress:
    """The progress of one piece of work. A context manager: the line is removed at its end."""

    def __init__(self, total, stream=None):
        self.total = total
        self.stream = stream or sys.stdout
        self.is_shown = self.stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self.began = time.monotonic()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.clear()

    def show(self, done, what=""):
        """Rewrites the line. False: there is no terminal, nothing is written."""
        if self.is_shown:
            took = time.monotonic() - self.began
            self.stream.write("\r\033[K" + line_of(done, self.total, took, what))
            self.stream.flush()
        return self.is_shown

    def print(self, *words, **how):
        """Prints lines that stay."""
        self.clear()
        print(*words, **how, file=self.stream, flush=True)

    def clear(self):
        """Removes the line, as before a line that stays."""
        if self.is_shown:
            self.stream.write("\r\033[K")
            self.stream.flush()
