#!/usr/bin/env python3
"""Which turns of a benchmark are compared with each other."""
import pathlib
import sys
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[2] / "support")]
from pace import groups, is_steady, longest_step  # noqa: E402
from testing import main  # noqa: E402

NEAR, FAR = [0.04, 0.05], [0.3, 0.4]


class Pace(unittest.TestCase):
    def test_a_turn_is_steady_unless_the_machine_changed_in_it(self):
        self.assertTrue(is_steady(NEAR))
        self.assertTrue(is_steady(FAR))
        self.assertFalse(is_steady([0.04, 0.3]))

    def test_turns_of_one_pace_are_a_group_and_the_fastest_comes_first(self):
        self.assertEqual(groups([FAR, NEAR, FAR, NEAR])[0], [1, 3])
        self.assertIn([0, 2], groups([FAR, NEAR, FAR, NEAR]))

    def test_a_turn_in_which_the_machine_changed_is_in_no_group(self):
        self.assertEqual(groups([NEAR + FAR, FAR]), [[1]])
        self.assertEqual(groups([NEAR + FAR]), [])

    def test_the_full_clock_is_that_beside_the_fastest_quarter_of_the_values(self):
        self.assertAlmostEqual(longest_step([0.8, 1.8, 0.8, 1.8]), 1.0)
        self.assertAlmostEqual(longest_step([0.5] + 9 * [0.8]), 1.0, msg="not beside a single one")

    def test_without_a_clock_every_value_counts(self):
        self.assertEqual(longest_step([None, None]), float("inf"))


if __name__ == "__main__":
    main()
