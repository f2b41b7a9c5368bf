#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The reference of the public headers: docs/reference/render renders it without a warning, and
finds a symbol, an enumerator and a section without documentation. The examples of the sections
compile.

Prints TAP, one line a case. Usage: reference_test.py PATH/TO/ROOT
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(sys.argv[1]).resolve()
EXAMPLES = "docs/reference/examples"
FOLDERS = ("libulc/client", "coll", "libulc/ports", "libulc/express")
PARTS = ("docs/reference", "libulc/client/ulc.h", "libulc/client/ulc.hpp",
         "libulc/client/ulc_upcall.h", "libulc/client/ulc_memory.h", "coll/coll.h",
         "libulc/ports/gamma.h", "libulc/express/express.h")
# name -> (file, text, what replaces it, what the report must say)
FAULTS = {
    "a_function_without_a_comment": (
        "coll/coll.h", "/** Calls ulc_barrier_start() and waits. */\n", "",
        "Member ulc_barrier(ulc_endpoint *ep, ulc_group group) (function) of"),
    "an_enumerator_without_a_comment": (
        "libulc/client/ulc.h", " /**< the time limit passed */", "",
        "ULC_ERR_TIMEOUT (enumerator) is not documented"),
    "a_member_without_a_comment": (
        "libulc/client/ulc.hpp", "    /// Calls ulc_leave_wait(). Throws Error.\n", "",
        "Member leave(Limit limit=kForever) (function) of class ulc::Endpoint is not documented"),
    "a_section_without_an_example": (
        "docs/reference/pages.dox", " * @snippet coll.c coll_start\n", "",
        "the section coll_start has no example"),
    "an_example_that_is_not": (
        EXAMPLES + "/coll.c", "/* [coll_start] */\n", "", "coll_start"),
}


class Tap:
    number = 0
    failed = False

    def case(self, name, passed, output="", skipped=""):
        self.number += 1
        self.failed |= not (passed or skipped)
        note = f" # SKIP {skipped}" if skipped else ""
        print("ok" if passed or skipped else "not ok", f"{self.number} - {name}{note}")
        if not (passed or skipped):
            print(f"{name}: got:\n{output}", file=sys.stderr)


def render(root):
    with tempfile.TemporaryDirectory() as output:
        done = subprocess.run([ROOT / "docs/reference/render", output, "--root", root],
                              capture_output=True, text=True, check=False)
        written = pathlib.Path(output, "html/index.html").is_file()
        return done.returncode, done.stdout + done.stderr, written


def copy_to(root):
    for part in PARTS:
        target = pathlib.Path(root, part)
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, target)
        else:
            shutil.copy(ROOT / part, target)


def rendering(tap):
    missing = "" if shutil.which("doxygen") else "no doxygen: tools/setup test brings it"
    status, output, written = (0, "", True) if missing else render(ROOT)
    tap.case("renders_each_public_header_without_a_warning",
             status == 0 and written and not output, output, missing)
    for name, (path, text, instead, said) in FAULTS.items():
        with tempfile.TemporaryDirectory() as root:
            if not missing:
                copy_to(root)
                file = pathlib.Path(root, path)
                source = file.read_text(encoding="utf-8")
                file.write_text(source.replace(text, instead), encoding="utf-8")
                status, output, _ = render(root)
                status = status if text in source else -1
            tap.case(f"finds_{name}", status == 1 and said in output, output, missing)


def compile_example(path):
    words = [os.environ.get("CXX", "c++"), "-std=c++20"] if path.suffix == ".cc" else \
        [os.environ.get("CC", "cc"), "-std=c11"]
    done = subprocess.run([*words, "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                           *(f"-I{ROOT / folder}" for folder in FOLDERS), path],
                          capture_output=True, text=True, check=False)
    return done.returncode == 0, done.stderr


def sources(tap):
    rules = (ROOT / "tools/check_includes").read_text(encoding="utf-8")
    public = re.search(r"PUBLIC_HEADERS = \{(.*?)\}", rules, re.S)[1]
    inputs = (ROOT / "docs/reference/Doxyfile").read_text(encoding="utf-8")
    left_out = [path for path in re.findall(r': "([^"]+)"', public) if path not in inputs]
    tap.case("names_all_public_headers", not left_out, str(left_out))
    for path in sorted((ROOT / EXAMPLES).iterdir()):
        passed, output = compile_example(path)
        tap.case(f"compiles_{path.name.replace('.', '_')}", passed, output)
    with tempfile.TemporaryDirectory() as folder:
        wrong = pathlib.Path(folder, "ulc.c")
        wrong.write_text((ROOT / EXAMPLES / "ulc.c").read_text(encoding="utf-8").replace(
            "ulc_join_wait(ep, NULL, ", "ulc_join_wait(ep, "), encoding="utf-8")
        passed, output = compile_example(wrong)
        tap.case("finds_an_example_that_does_not_compile",
                 not passed and "too few arguments" in output, output)


def main():
    tap = Tap()
    rendering(tap)
    sources(tap)
    print(f"1..{tap.number}")
    return 1 if tap.failed else 0


sys.exit(main())
