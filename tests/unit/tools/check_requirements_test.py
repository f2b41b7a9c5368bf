#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Plants one fault of each kind; tools/check_requirements must report it alone.

Prints TAP, one line a case. Usage: check_requirements_test.py PATH/TO/check_requirements
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

STREAMS = ("# Streams\n\n- [S-1] A sender **MUST** number packets.\n"
           "- [S-2] A receiver **SHOULD NOT**\n  wait, as S-1 says.\n- [S-3] Retired: see S-1.\n")
GROUPS = "| no | rule |\n| --- | --- |\n| [G-1] | it **MUST** be so |\n"
SCRIPT = "# S-2\nframe 1\n"
TEST = "// S-1, G-1\nTEST(A, b) {}\n// An Intel i7-S-9 and CM-5 are no citations.\n"
OPEN = "tools/shared/requirements_open.txt"
CLEAN = {
    "docs/protocol/STREAMS.md": STREAMS,
    "docs/protocol/GROUPS.md": GROUPS,
    "tests/script/a.txt": SCRIPT,
    "tests/unit/a_test.cc": TEST,
    "pmd_app/a.cc": "// S-1\n",
    OPEN: "# Requirements without a test\n",
}
# name -> (file, its text, what the report must say)
FAULTS = {
    "one_that_no_test_names": ("tests/script/a.txt", "frame 1\n",
                               "STREAMS.md:4: no test names S-2"),
    "one_that_only_a_source_names": ("tests/unit/a_test.cc", "// G-1\n", "no test names S-1"),
    "a_name_of_none_in_a_test": ("tests/script/a.txt", SCRIPT + "# S-4\n",
                                 "a.txt:3: there is no requirement S-4"),
    "a_name_of_none_in_a_source": ("pmd_app/a.cc", "// G-2\n", "there is no requirement G-2"),
    "a_name_of_none_in_a_page": ("docs/protocol/STREAMS.md", STREAMS.replace("as S-1", "as S-7"),
                                 "there is no requirement S-7"),
    "a_number_given_twice": ("docs/protocol/STREAMS.md",
                             STREAMS + "- [S-1] A sender **MUST** wait.\n", "S-1 is given twice"),
    "a_gap": ("docs/protocol/STREAMS.md", STREAMS.replace("- [S-3] Retired: see S-1.\n", "")
              + "- [S-4] Retired: it is one.\n", "S-3 is missing"),
    "no_must": ("docs/protocol/STREAMS.md", STREAMS.replace("**MUST**", "must"),
                "S-1 has no **MUST**"),
    "a_retired_one_without_reason": ("docs/protocol/STREAMS.md",
                                     STREAMS.replace("Retired: see S-1.", "Retired:"),
                                     "S-3 is retired without a reason"),
    "a_test_of_a_retired_one": ("tests/script/a.txt", SCRIPT + "# S-3\n", "S-3 is retired"),
    "two_letters_of_a_page": ("docs/protocol/STREAMS.md",
                              STREAMS + "- [T-1] Retired: it is one.\n",
                              "the letter of this page is S"),
    "a_letter_of_another_page": ("docs/protocol/GROUPS.md", GROUPS + "| [S-4] | Retired: no. |\n",
                                 "the letter of this page is G"),
    "a_letter_of_two_pages": ("docs/protocol/X.md", "- [S-4] Retired: it is one.\n",
                              "the letter S is that of docs/protocol/STREAMS.md"),
    "an_open_one_that_has_a_test": (OPEN, "S-2: hard\n", "a.txt names S-2: remove the line"),
    "an_open_one_that_does_not_exist": (OPEN, "S-4: hard\n", "there is no requirement S-4"),
}


class Tap:
    number = 0
    failed = False

    def case(self, name, passed, output):
        self.number += 1
        self.failed |= not passed
        print("ok" if passed else "not ok", f"{self.number} - {name}")
        if not passed:
            print(f"{name}: got:\n{output}", file=sys.stderr)


def write(root, files):
    for name, text in files.items():
        path = pathlib.Path(root, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def run(checker, root):
    done = subprocess.run([checker, "--root", root], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def git(root, *words):
    subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-C", root,
                    *words], capture_output=True, check=True)


def plain_trees(checker, tap):
    with tempfile.TemporaryDirectory() as root:
        write(root, CLEAN)
        status, output = run(checker, root)
        tap.case("accepts_a_clean_tree",
                 status == 0 and "4 requirements, 3 names" in output, output)
    for name, (path, text, said) in FAULTS.items():
        with tempfile.TemporaryDirectory() as root:
            write(root, CLEAN | {path: text})
            status, output = run(checker, root)
            tap.case(f"finds_{name}",
                     status == 1 and said in output and len(output.splitlines()) == 2, output)
    with tempfile.TemporaryDirectory() as root:
        write(root, CLEAN | {"tests/script/a.txt": "frame 1\n", OPEN: "S-2: it takes a day\n"})
        status, output = run(checker, root)
        tap.case("accepts_an_open_one_with_a_reason", status == 0 and "1 open" in output, output)
        write(root, {OPEN: "S-2:\n"})
        status, output = run(checker, root)
        tap.case("finds_an_open_one_without_a_reason",
                 status == 1 and "S-2 has no reason" in output, output)


def repositories(checker, tap):
    with tempfile.TemporaryDirectory() as root:
        git(root, "init", "-q", "-b", "main")
        write(root, CLEAN)
        git(root, "add", "-A")
        git(root, "commit", "-q", "-m", "a: b")
        status, output = run(checker, root)
        tap.case("accepts_a_clean_repository", status == 0, output)
        shorter = STREAMS.replace("- [S-3] Retired: see S-1.\n", "")
        write(root, {"docs/protocol/STREAMS.md": shorter})
        status, output = run(checker, root)
        tap.case("finds_a_last_number_that_main_has",
                 status == 1 and "S-3 of main is missing" in output, output)
        write(root, CLEAN | {"tests/script/a.txt": "frame 1\n", OPEN: "S-2: it takes a day\n"})
        status, output = run(checker, root)
        tap.case("finds_an_open_one_that_had_a_test",
                 status == 1 and "may only shrink" in output, output)
        write(root, CLEAN | {"docs/protocol/GROUPS.md": GROUPS + "| [G-2] | it **MUST** go on |\n",
                             OPEN: "G-2: it takes a day\n"})
        status, output = run(checker, root)
        tap.case("accepts_an_open_one_that_is_new", status == 0, output)


def main():
    checker = pathlib.Path(sys.argv[1]).resolve()
    tap = Tap()
    plain_trees(checker, tap)
    if shutil.which("git"):
        repositories(checker, tap)
    print(f"1..{tap.number}")
    return 1 if tap.failed else 0


sys.exit(main())
