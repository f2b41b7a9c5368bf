#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Plants one fault of each kind; tools/check_prose must report it, and nothing in a clean tree.

Prints TAP, one line a case. Usage: check_prose_test.py PATH/TO/check_prose
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

LONG = "a" * 101
GUIDE = "| PEER_LEFT | none |\n| drop_crc, drop_two | `--crc`, `--nodes` |\n"
CLEAN = {
    "libulc/base/a.h": "/// Returns the number of frames.\nint frames();\n"
                       "int octets;  ///< in the ring\n",
    "libulc/base/a.cc": '// The `mend` of a name in code is exempt. What else is?\nint room = 1;\n'
                        'int nobody() { return say("no such user"); }\n',
    "libulc/base/b.cc": "// A link may be longer: https://example.org/" + "x" * 100 + "\n",
    "tools/run": "#!/bin/bash\necho 'a' # prints one letter\n",
    "tools/run.py": '"""Runs all tests."""\nprint("one")\n',
    "docs/guide.md": "# What it is\n\nSee [the code](../libulc/base/a.h), "
                     "[the web](https://example.org), [a part](protocol/A.md#71-the-key-of-a-job-2), "
                     "[here](#what-it-is).\n| what | whose |\n\n"
                     "```\nWhat mends is code.\n```\n" + "A long line. " * 20 + "\n",
    "docs/protocol/A.md": "## 4. Streams\n\nIt is in §7.1; U-Net MPI §9, §12.\n\n"
                          "### 7.1 The `key` of a job, 2\n",
    "docs/PROTOCOL.md": "See [the page](protocol/A.md).\n",
    "libulc/base/d.cc": "// docs/PROTOCOL.md §4, §7.1.\n",
    "docs/design/REFERENCES.md": "| name | source |\n| --- | --- |\n| U-Net MPI | a paper |\n"
                                 "| RFC 1982 | a standard |\n",
    "libulc/base/c.cc": "// As U-Net MPI §4 and RFC 1982 say; the name may begin before: U-Net\n"
                        "// MPI §5. A document is guide.md §2.\n",
    "coll/tables/x.toml": LONG + "\n",
    "libulc/base/errors.def": 'ULC_ERROR(kPeerLeft, PEER_LEFT, 9, "the peer left the job")\n',
    "libulc/base/counters.def": 'ULC_COUNTER(drop_crc, "frames", "damaged")\n'
                                'ULC_COUNTER(naps, "events", "sleeps")\n',
    "pmd_app/main/options.def": 'ULC_OPTION("crc", crc, flag)\n',
    "tools/run.cc": 'app.add_option("--nodes", nodes);\n',
    "docs/guide/TROUBLESHOOTING.md": GUIDE,
    "docs/design/THREAT_MODEL.md": "| flood | `a.h` | `no_rate`, `…_limit` |\n| none | `b` | – |\n",
    "tests/mutants/there.toml": '# SPDX\n[[mutant]]\nname = "no_rate"\n',
    "libulc/base/e.cc": "#include <other/foreign.h>\n"
                        "// See a.h, base/b.cc, libulc/base/, `guide.md`,\n"
                        "// foreign.h, <none.h>, hw/net/none.cc, /proc/none.cc, none_*.cc and\n"
                        "// docs/guide/NAME.\n",
    "CHANGELOG.md": "The file docs/none.md is gone.\n",
    "picture.png": "Nobody reads this.\n",
}
# name -> (file, text after two empty lines, what the report must say)
FAULTS = {
    "long_code": ("libulc/base/x.cc", f"int {LONG};", "106 columns"),
    "long_comment": ("libulc/base/x.cc", f"// {LONG}", "104 columns"),
    "long_script": ("tools/x", "#!/bin/bash\n\n" + LONG, "101 columns"),
    "long_line_of_the_build": ("libulc/meson.build", LONG, "101 columns"),
    "banned_word": ("libulc/base/x.cc", "// This repairs and mends it.", '"mends"'),
    "banned_phrase": ("libulc/base/x.cc", "// It waits for ever.", '"for ever"'),
    "banned_phrase_over_two_lines": ("libulc/base/x.cc", "// It has one of its\n// own.",
                                     '"of its own"'),
    "banned_word_behind_code": ("libulc/base/x.cc", "int a;  // for nobody", '"nobody"'),
    "banned_word_in_a_message": ("libulc/base/x.cc", 'say("it was sent in vain");', '"in vain"'),
    "banned_word_in_a_block_comment": ("libulc/base/x.h", "/* Starts it anew. */", '"anew"'),
    "banned_word_in_python": ("tools/x.py", "# so many of them", '"so many"'),
    "banned_word_in_a_docstring": ("tools/x.py", '"""Tells whoever asks."""', '"whoever"'),
    "banned_word_in_a_script": ("tools/x", "#!/bin/sh\n\ntrue # beside it", '"beside"'),
    "banned_word_in_a_document": ("docs/x.md", "The peer is told.", '"is told"'),
    "banned_word_in_a_table": ("docs/x.md", "| a | there is room |", '"room"'),
    "banned_word_in_a_manual_page": ("docs/man/x.1", "The frame bears it.", '"bears"'),
    "sentence_with_what": ("libulc/base/x.cc", "// Sent. What came is lost.", 'begins with "What"'),
    "sentence_with_who": ("docs/x.md", "Who sends waits.", 'begins with "Who"'),
    "sentence_with_of": ("libulc/base/x.cc", "// Of these the first counts.", 'begins with "Of"'),
    "doc_comment_with_a_condition": ("libulc/base/x.h", "/// When it is done.", 'not "When"'),
    "doc_comment_with_a_preposition": ("libulc/base/x.h", "/// From the clock.", 'not "From"'),
    "doc_comment_of_a_member": ("libulc/base/x.h", "int a;  ///< of all ports", 'not "of"'),
    "citation_of_no_source": ("libulc/base/x.cc", "// Counts as GAMMA §4.5 does.", '"GAMMA"'),
    "citation_of_no_standard": ("docs/x.md", "Compared as RFC 1983 says.", '"RFC 1983"'),
    "link_to_no_file": ("docs/x.md", "See [this](none.md#part).", "leads to no file: none.md"),
    "link_to_no_heading": ("docs/x.md", "See [this](guide.md#whose).", "has no heading #whose"),
    "link_to_no_heading_of_the_page": ("docs/x.md", "See [this](#none).", "has no heading #none"),
    "name_of_no_document": ("libulc/base/x.cc", "// See docs/none.md.", "there is no docs/none.md"),
    "name_of_no_document_alone": ("tools/x.py", "# NONE.md has it.", "there is no NONE.md"),
    "name_of_no_header": ("libulc/base/x.h", "int a;  ///< by base/none.h", "no base/none.h"),
    "name_of_no_source": ("docs/x.md", "The code is in `none.cc`.", "there is no none.cc"),
    "name_of_no_folder": ("docs/x.md", "| the code | libulc/none/ |", "there is no libulc/none"),
    "name_of_no_script": ("docs/man/x.1", "It is \\fBtools/no\\-ne\\fR.", "no tools/no-ne"),
    "section_that_is_not": ("libulc/base/x.cc", "// PROTOCOL.md §4, §7.2.", "no section 7.2"),
    "section_behind_a_link": ("docs/x.md", "As [PROTOCOL](PROTOCOL.md) §5 says.", "no section 5"),
    "section_of_the_own_pages": ("docs/protocol/B.md", "It says so in §4 and §9.", "no section 9"),
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


def run(checker, root, *words):
    done = subprocess.run([checker, "--root", root, *words],
                          capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def git(root, *words):
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    done = subprocess.run(["git", *who, "-C", root, *words],
                          capture_output=True, text=True, check=True)
    return done.stdout.strip()


def commit(root, subject, files):
    write(root, files)
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", subject)
    return git(root, "rev-parse", "HEAD")


def plain_trees(checker, tap):
    with tempfile.TemporaryDirectory() as root:
        write(root, CLEAN)
        status, output = run(checker, root)
        tap.case("accepts_a_clean_tree_without_git",
                 status == 0 and "no git history" in output, output)
    for name, (path, text, said) in FAULTS.items():
        with tempfile.TemporaryDirectory() as root:
            script = text.startswith("#!")
            write(root, CLEAN | {path: (text if script else "\n\n" + text) + "\n"})
            status, output = run(checker, root)
            lines = output.splitlines()
            found = lines[0].startswith(f"{path}:3: ") and said in lines[0]
            tap.case(f"finds_{name}", status == 1 and found and len(lines) == 2, output)
    with tempfile.TemporaryDirectory() as root:
        write(root, CLEAN | {"libulc/base/x.cc": "// prose-ok: the user nobody\n"})
        status, output = run(checker, root)
        tap.case("accepts_an_exemption", status == 0, output)


def guides(checker, tap):
    for name, text, said in (
            ("an_error_without_a_row", GUIDE.replace("PEER_LEFT", "PEER"), "no row for PEER_LEFT"),
            ("a_counter_without_a_row", GUIDE.replace("drop_crc", "drop"), "no row for drop_crc"),
            ("an_option_that_is_not", GUIDE + "`--crcs`\n", "no program has the option --crcs")):
        with tempfile.TemporaryDirectory() as root:
            write(root, CLEAN | {"docs/guide/TROUBLESHOOTING.md": text})
            status, output = run(checker, root)
            tap.case(f"finds_{name}", status == 1 and said in output
                     and len(output.splitlines()) == 2, output)


def threats(checker, tap):
    with tempfile.TemporaryDirectory() as root:
        write(root, CLEAN | {"docs/design/THREAT_MODEL.md": "\n| flood | `a.h` | `no_limit` |\n"})
        status, output = run(checker, root)
        tap.case("finds_a_planted_fault_that_is_not", status == 1 and output.startswith(
            "docs/design/THREAT_MODEL.md:2: there is no planted fault no_limit"), output)


def words(checker, tap):
    mark = "<!-- written by: tools/run --results FILE -->\n"
    table = "| a b |\n" * 20_000
    for name, pages, said in (
            ("accepts_50000_words", {"docs/b/x.md": "a " * 50_000}, ""),
            ("finds_a_word_too_many", {"docs/b/x.md": "a " * 49_990, "docs/y.md": "a " * 11},
             "50001 words, at most 50000: shorten a page; the longest are docs/b/x.md (49990)"),
            ("finds_the_words_of_a_table", {"docs/x.md": table}, "80000 words"),
            ("accepts_a_table_that_a_command_writes", {"docs/x.md": mark + table}, ""),
            ("finds_words_next_to_such_a_table", {"docs/x.md": mark + table + "a " * 50_001},
             "50001 words"),
            ("finds_a_mark_without_a_command",
             {"docs/x.md": mark.replace("tools/run", "tools/none") + table},
             "docs/x.md: it is written by tools/none, which is no file")):
        with tempfile.TemporaryDirectory() as root:
            write(root, {"tools/run": "true\n"} | pages)
            status, output = run(checker, root)
            tap.case(name, (status == 1 and said in output) if said else status == 0,
                     output[-300:])


def pages(checker, tap):
    faults = ["MPI_Cancel() of a send", "MPI_Compare_and_swap() of 8\nbytes", "MPI_Win_free",
              "MPI_BOTTOM"]
    page = ".SH NAME\nulc\n.SH BUGS\n{}.\n.SH SEE ALSO\nulc\n"
    whole = page.format(", ".join(faults))
    for path in ("docs/man/fi_ulc.7", "docs/man/ulc_mpi.7"):
        for left_out in [None, *faults]:
            text = page.format(", ".join(one for one in faults if one != left_out))
            with tempfile.TemporaryDirectory() as root:
                write(root, CLEAN | {"docs/man/fi_ulc.7": whole, "docs/man/ulc_mpi.7": whole,
                                     path: text})
                status, output = run(checker, root)
                page_name = path.rpartition("/")[2]
                name = f"{page_name}_without_{left_out[:8]}" if left_out else f"whole_{page_name}"
                tap.case(name, status == (1 if left_out else 0) and
                         (not left_out or f"{path}: BUGS does not name" in output), output)


def licences(checker, tap):
    line = "SPDX-License-Identifier: BSD-3-Clause\n"
    files = {"LICENSE": "Redistribution is permitted.\n", "a.cc": "// " + line,
             "tools/a": "#!/bin/sh\n# " + line, "docs/a.md": "A document.\n"}
    for name, path, text in (("", "", ""), ("a_source_without_licence", "a.cc", "int a;\n"),
                             ("a_script_without_licence", "tools/a", "#!/bin/sh\ntrue\n"),
                             ("another_licence", "a.cc", "// SPDX-License-Identifier: MIT\n")):
        with tempfile.TemporaryDirectory() as root:
            write(root, files | ({path: text} if path else {}))
            status, output = run(checker, root)
            tap.case(f"finds_{name}" if path else "accepts_sources_with_a_licence",
                     status == (1 if path else 0) and (not path or f"{path}:" in output and
                                                       "add a comment above" in output), output)


def repositories(checker, tap):
    with tempfile.TemporaryDirectory() as root:
        git(root, "init", "-q", "-b", "main")
        start = commit(root, "Anything goes before the rules", CLEAN)

        def case(name, said, *words):
            status, output = run(checker, root, "--since", start, *words)
            tap.case(name, (status == 1 and said in output) if said else status == 0, output)

        write(root, {"libulc/new.cc": "// Starts anew.\n"})
        case("finds_a_fault_in_a_file_that_is_not_added_yet", 'libulc/new.cc:1: "anew"')
        pathlib.Path(root, "libulc/new.cc").unlink()
        commit(root, "base: convert a file", {})
        case("accepts_a_good_subject", "")
        for name, subject, said in (
                ("a_subject_without_component", "Convert another file", 'not "component: summary"'),
                ("a_subject_with_a_capital_component", "Base: convert a file",
                 'not "component: summary"'),
                ("a_subject_with_a_full_stop", "base: convert a file.", 'not "component: summary"'),
                ("a_long_subject", "base: " + "a" * 60, "has 66 characters")):
            commit(root, subject, {})
            case(f"finds_{name}", said)
            git(root, "reset", "-q", "--hard", "HEAD~1")
        commit(root, "base,shm/wire_file: " + "a" * 45, {})
        case("accepts_a_subject_of_65_characters", "")
        with tempfile.TemporaryDirectory() as other:
            git(root, "clone", "-q", "--depth", "1", f"file://{root}", other)
            status, output = run(checker, other, "--since", start)
            tap.case("works_in_a_shallow_clone", status == 0 and "no git history" in output, output)


def main():
    checker = pathlib.Path(sys.argv[1]).resolve()
    tap = Tap()
    plain_trees(checker, tap)
    guides(checker, tap)
    threats(checker, tap)
    words(checker, tap)
    pages(checker, tap)
    licences(checker, tap)
    if shutil.which("git"):
        repositories(checker, tap)
    print(f"1..{tap.number}")
    return 1 if tap.failed else 0


sys.exit(main())
