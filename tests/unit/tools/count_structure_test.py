#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The count of structure finds what it counts in the text of C++, and fails when a figure grows."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[3] / "tools/count_structure"
TABLE = """
[[functions]]
name = "ways out"
folders = ["engine"]
calls = '\\\\bsend\\\\('
counted = ["first_way", "Second"]
parts = ["helper"]
most = 2
[[types]]
name = "types"
folders = ["engine"]
counted = ["engine/core.h:Message", "engine/core.h:Missing"]
most = 1
[[members]]
name = "members"
classes = ["engine/core.h:Endpoint"]
most = 3
[[largest]]
name = "functions"
folders = ["engine"]
most = 5
[[lines]]
name = "lines"
folders = ["engine"]
most = 100
slack = 90
"""
HEADER = """
struct alignas(64) Message {
    int octets = 0;
};
struct Endpoint {  // int comment;
    explicit Endpoint(int n) : size{n}, rest(f(n)) {}
    Endpoint& operator=(const Endpoint&) = delete;
    [[nodiscard]] int get() const noexcept { return size; }
    using Other = int;
    enum class Kind { kOne, kTwo };
    struct Inner {
        int not_of_endpoint = 0;
    };
    int size;
    int rest = f(3);
    Message list[4] = {};
    void tell();
    bool is_told() const;

private:
    int hidden = 0;
};
"""
SOURCE = """
bool first_way(int n) {
    if (n > 0) return send(n);
    return false;
}
Second::Second(int n) : member_{n}, other_(f(n)) { send(n); }
void helper() { send(0); }
void innocent() { resend(0); /* send(0) */ print("send(0)"); }
"""


class Structure(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        (self.root / "engine").mkdir()
        (self.root / "table.toml").write_text(TABLE.replace("\\\\", "\\"))

    def check(self, header=HEADER, source=SOURCE):
        (self.root / "engine/core.h").write_text(header)
        (self.root / "engine/a.cc").write_text(source)
        return subprocess.run([sys.executable, SCRIPT, "--root", self.root, "--table",
                               self.root / "table.toml", "--list"],
                              capture_output=True, text=True, check=False)

    def assert_error(self, done, text):
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn(text, done.stdout)

    def test_a_tree_within_its_budgets_passes(self):
        done = self.check()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for name in ("first_way", "Second", "Endpoint::size", "Endpoint::rest", "Endpoint::list[4]",
                     "engine/core.h:Message", "engine/core.h:Endpoint"):
            self.assertIn(f"  {name}\n", done.stdout)
        self.assertNotIn("Missing", done.stdout)

    def test_a_way_without_a_name_is_found(self):
        self.assert_error(self.check(source=SOURCE + "int third(int n) { return send(n); }\n"),
                          "ways out: third is a new one: name it in the table")

    def test_a_way_that_ends_lowers_the_budget(self):
        self.assert_error(self.check(source=SOURCE.replace("return send(n)", "return n")),
                          "ways out: 1: lower the budget of 2 to it")

    def test_a_public_member_more_is_found(self):
        self.assert_error(self.check(HEADER.replace("void tell();", "void tell();\n  int one;")),
                          "members: 4, at most 3")

    def test_a_private_member_more_is_none(self):
        self.assertEqual(self.check(HEADER.replace("hidden = 0;", "hidden = 0, x;")).returncode, 0)

    def test_a_function_more_of_the_largest_class_is_found(self):
        self.assert_error(self.check(HEADER.replace("void tell();", "void tell(); void say();")),
                          "functions: 6, at most 5")

    def test_lines_are_found_above_the_budget_only(self):
        self.assert_error(self.check(source=SOURCE + "\n" * 100), "at most 100")


unittest.main()
