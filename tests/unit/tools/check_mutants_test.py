#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests of tests/mutants/check_mutants: when a test counts as one that does not end, and which
faults must be marked."""
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import pathlib
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[3] / 'tests' / 'mutants' / 'check_mutants'


def load():
    loader = importlib.machinery.SourceFileLoader('check_mutants', str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def python(text):
    return [sys.executable, '-c', text]


COMPUTES = 'import time\nwhile time.process_time() < 1.3: pass\nprint("done")'
COMPUTES_WITHOUT_END = 'while True: pass'
WAITS_WITHOUT_END = 'import signal\nwhile True: signal.pause()'


class Commands(unittest.TestCase):
    def test_a_unit_test_is_a_program_with_its_files(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name).resolve()
            (folder / 'meson-info').mkdir()
            (folder / 'compile_commands.json').write_text('[]')
            (folder / 'meson-info/intro-tests.json').write_text(json.dumps([
                {'name': 'wire_job', 'cmd': [f'{folder}/tests/unit/unit_wire', '--files=a.cc']},
                {'name': 'sim_x', 'cmd': [f'{folder}/tests/sim/sim_x']},
                {'name': 'wire_job', 'cmd': ['/elsewhere/wire_job_test']}]))
            build = load().Build(folder)
            self.assertEqual(build.command_of('tests/unit/unit_wire_job'),
                             ('tests/unit/unit_wire', ['--files=a.cc']))
            self.assertEqual(build.command_of('tests/sim/sim_sim_x'), ('tests/sim/sim_sim_x', []))


class Limits(unittest.TestCase):
    def run_test(self, text, usual, **limits):
        return load().run_limited(python(text), lambda: usual, **limits)

    def test_the_status_and_output_of_a_test_that_ends(self):
        self.assertEqual(self.run_test('print("x"); raise SystemExit(3)', 0), (3, 'x\n'))

    def test_a_test_that_computes_without_end_does_not_end(self):
        self.assertIsNone(self.run_test(COMPUTES_WITHOUT_END, 0.01, seconds=1)[0])

    def test_a_slow_test_has_more_time(self):
        self.assertEqual(self.run_test(COMPUTES, 1.3, seconds=1), (0, 'done\n'))

    def test_a_test_that_waits_without_end_does_not_end(self):
        self.assertIsNone(self.run_test(WAITS_WITHOUT_END, 0.01, wall=0.5)[0])

    def test_a_busy_machine_is_named(self):
        with self.assertRaises(TimeoutError):
            self.run_test(COMPUTES_WITHOUT_END, 0.01, seconds=2, wall=1.8)


LIST = """folder = "here"
[[mutant]]
name = "a"
find = "int once;"
[[mutant]]
name = "b"
find = "int twice;"
[[mutant]]
name = "c"
find = "int twice;"
file = "second.c"
[[mutant]]
name = "d"
find = "int never;"
"""


class Texts(unittest.TestCase):
    def test_are_found_in_the_folder_or_in_the_named_file(self):
        with tempfile.TemporaryDirectory() as root:
            root = pathlib.Path(root)
            (root / 'here' / 'below').mkdir(parents=True)
            (root / 'here.toml').write_text(LIST)
            (root / 'here' / 'below' / 'first.cc').write_text('int once;\nint twice;\n')
            (root / 'here' / 'second.c').write_text('int twice;\n')
            (root / 'here' / 'notes.md').write_text('int once;\nint never;\n')
            mutants = {m['name']: m for m in load().load_mutants(root, root)}
        self.assertEqual(mutants['a']['file'], 'here/below/first.cc')
        self.assertNotIn('fault', mutants['a'])
        self.assertIn('stands 2 times in here', mutants['b']['fault'])
        self.assertEqual(mutants['c']['file'], 'here/second.c')
        self.assertNotIn('fault', mutants['c'])
        self.assertIn('stands 0 times in here', mutants['d']['fault'])


class Marks(unittest.TestCase):
    def texts(self, change):
        module = load()
        mutants = module.load_mutants()
        for mutant in mutants:
            change(mutant)
        with contextlib.redirect_stdout(io.StringIO()) as said:
            return module.check_texts(mutants), said.getvalue()

    def test_the_list_is_accepted(self):
        self.assertEqual(self.texts(lambda mutant: None)[0], 0)

    def test_a_fault_that_the_threat_model_lists_needs_its_mark(self):
        name = 'near_of_another_user'

        def change(mutant):
            if mutant['name'] == name:
                del mutant['security']

        status, said = self.texts(change)
        self.assertEqual(status, 1)
        self.assertIn(f'{name}: THREAT_MODEL.md lists it: write security = true', said)


if __name__ == '__main__':
    unittest.main()
