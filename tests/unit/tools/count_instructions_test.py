#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests of bench/count_instructions: a case above its budget fails and is explained."""
import collections
import contextlib
import importlib.machinery
import importlib.util
import io
import pathlib
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[3] / 'bench' / 'count_instructions'
BUDGET = '''[[budget]]
name = "a case"
program = "bench"
case = "a/8/"
per = 2
instructions = 1000
'''


def load():
    loader = importlib.machinery.SourceFileLoader('count_instructions', str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


class Budgets(unittest.TestCase):
    def check(self, counted, text=BUDGET):
        """The exit status and output of a check that counted `counted` instructions."""
        module = load()
        module.count = lambda program, case, per, within, engine_options: (
            collections.Counter({'f': counted, 'a::Trace::g': 50 if engine_options else 0}), None)
        with tempfile.NamedTemporaryFile('w', suffix='.toml') as file:
            file.write(text)
            file.flush()
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                status = module.check_budgets(file.name, 'build')
        return status, output.getvalue()

    def test_three_percent_more_pass(self):
        status, output = self.check(1029)
        self.assertEqual(status, 0)
        self.assertIn('1 passed, 0 failed', output)

    def test_four_percent_more_fail_with_the_command_that_explains(self):
        status, output = self.check(1040)
        self.assertEqual(status, 1)
        self.assertIn("bench/count_instructions --per 2 build/bench/bench 'a/8/'", output)
        self.assertIn('0 passed, 1 failed', output)

    def test_a_generous_budget_passes_and_is_named(self):
        status, output = self.check(900)
        self.assertEqual(status, 0)
        self.assertIn('lower the budget', output)

    def test_an_optional_budget_is_left_out_where_its_program_is_not_built(self):
        status, output = self.check(1040, BUDGET + 'optional = true\n')
        self.assertEqual(status, 0)
        self.assertIn('not built', output)
        self.assertIn('0 passed, 0 failed', output)

    def test_a_budget_of_some_functions_counts_no_others(self):
        some = BUDGET.replace('1000', '50') + 'functions = "::Trace::"\nengine_options = "-x"\n'
        status, output = self.check(1040, some)
        self.assertEqual(status, 0)
        self.assertNotIn('lower the budget', output)
        status, output = self.check(1040, some.replace('= 50', '= 40'))
        self.assertEqual(status, 1)
        self.assertIn("ULC_ENGINE_OPTIONS='-x' bench/count_instructions", output)

    def test_a_file_without_budgets_is_refused(self):
        with self.assertRaises(SystemExit):
            self.check(1, 'budget = []\n')


class Stages(unittest.TestCase):
    STAGES = [{'name': 'first', 'functions': ['^a::', 'shared']},
              {'name': 'second', 'functions': ['b::', 'shared']}]

    def test_a_function_counts_in_the_first_stage_that_it_matches(self):
        own = collections.Counter({'a::f(int)': 5, 'x::b::g': 7, 'shared': 11, 'other a::': 13})
        self.assertEqual(load().by_stage(own, self.STAGES),
                         [('first', 16), ('second', 7), ('the rest', 13)])


if __name__ == '__main__':
    unittest.main()
