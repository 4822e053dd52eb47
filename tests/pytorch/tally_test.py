#!/usr/bin/env python3
"""What one case does to the others of a comparison."""
import pathlib
import sys
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1] / "support")]
from tally import Tally, Unlike  # noqa: E402
from testing import main  # noqa: E402


class TallyTest(unittest.TestCase):
    def test_a_case_that_cannot_be_computed_fails_alone(self):
        tally, done = Tally(), []
        for op in "add", "swish", "relu":
            with tally.case(f"{op} in f64"):
                done.append({"add": 1, "relu": 2}[op])
        self.assertEqual(done, [1, 2])
        self.assertEqual(tally.failures, ["swish in f64: KeyError: 'swish'"])
        self.assertEqual(tally.summary(), "2 alike, 1 not")

    def test_a_case_that_is_unlike_says_why(self):
        tally = Tally()
        with tally.case("add in f32"):
            raise Unlike("y is 0.1 away")
        self.assertEqual(tally.failures, ["add in f32: y is 0.1 away"])

    def test_an_interrupt_ends_all(self):
        tally = Tally()
        with self.assertRaises(KeyboardInterrupt), tally.case("add in f64"):
            raise KeyboardInterrupt
        self.assertEqual(tally.failures, [])


if __name__ == "__main__":
    main()
