#!/usr/bin/env python3
"""Which turns of a benchmark are compared with each other."""
import pathlib
import sys
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[2] / "support")]
from pace import alike, is_steady  # noqa: E402
from testing import main  # noqa: E402

NEAR, FAR = [0.04, 0.05], [0.3, 0.4]


class Pace(unittest.TestCase):
    def test_a_turn_is_steady_unless_the_machine_changed_in_it(self):
        self.assertTrue(is_steady(NEAR))
        self.assertTrue(is_steady(FAR))
        self.assertFalse(is_steady([0.04, 0.3]))

    def test_turns_of_the_more_frequent_pace_are_compared(self):
        self.assertEqual(alike([NEAR, FAR, NEAR, NEAR, FAR]), [0, 2, 3])
        self.assertEqual(alike([FAR, FAR, NEAR]), [0, 1])

    def test_of_two_paces_as_frequent_the_faster_one_counts(self):
        self.assertEqual(alike([FAR, NEAR]), [1])

    def test_a_turn_in_which_the_machine_changed_counts_with_neither(self):
        self.assertEqual(alike([NEAR + FAR, FAR]), [1])

    def test_nothing_is_compared_where_no_turn_was_steady(self):
        self.assertEqual(alike([NEAR + FAR]), [])


if __name__ == "__main__":
    main()
