#!/usr/bin/env python3
"""Who is measured next, and what counts, while a benchmark's contenders take turns."""
import pathlib
import sys
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[2] / "support")]
from contenders import Sample  # noqa: E402
from testing import main  # noqa: E402
from turns import Turns  # noqa: E402

NEAR, FAR = [0.04, 0.05], [0.3, 0.4]
SMALL, LARGE = 4, 1024
FULL, LOW = 0.9, 1.8  # nanoseconds of a step of arithmetic


class Algorithm:
    def __init__(self, peer, times, may_fail=True):
        self.peer, self.times, self.may_fail = peer, times, may_fail

    def sizes(self, wanted):
        return [size for size in wanted if size in self.times]


class TurnsTest(unittest.TestCase):
    def setUp(self):
        self.ours = Algorithm("ours", {SMALL: 1, LARGE: 5}, may_fail=False)
        self.ring = Algorithm("peer", {SMALL: 9, LARGE: 5})
        self.tree = Algorithm("peer", {SMALL: 2, LARGE: 6})
        self.turns = Turns([self.ours, self.ring, self.tree], [SMALL, LARGE], wanted=3)

    def take(self, paces=NEAR, low=()):
        contender, sizes = self.turns.next()
        self.turns.add(contender, paces, {size: Sample(contender.times[size], LOW if size in low else FULL) for size in sizes})
        return contender, sizes

    def test_all_take_turns_and_measure_everything_twice(self):
        self.assertEqual([self.take() for _ in range(6)], 2 * [(one, [SMALL, LARGE]) for one in (self.ours, self.ring, self.tree)])

    def test_an_algorithm_goes_on_only_with_sizes_at_which_it_came_near_its_peers_best(self):
        for _ in range(6):
            self.take()
        self.assertEqual([self.take() for _ in range(3)], [(self.ours, [SMALL, LARGE]), (self.ring, [LARGE]), (self.tree, [SMALL, LARGE])])

    def test_the_benchmark_ends_when_each_has_had_its_turns(self):
        for _ in range(9):
            self.take()
        self.assertIsNone(self.turns.next())
        self.assertEqual(self.turns.least(), 3)

    def test_a_turn_at_another_pace_is_taken_again_and_does_not_count(self):
        self.take()
        self.take(FAR)
        for _ in range(7):
            self.take()
        self.assertEqual(len(self.turns.counted()), 8)
        self.assertEqual(self.take(), (self.ring, [LARGE]))
        self.assertIsNone(self.turns.next())

    def test_one_whose_turns_never_keep_the_pace_does_not_keep_the_others_from_theirs(self):
        for _ in range(30):
            self.take(NEAR + FAR if self.turns.next()[0] is self.ring else NEAR)
        self.assertEqual(self.turns.missing(), [self.ring])
        self.assertEqual(self.turns.least(), 3)

    def test_the_pace_at_which_more_contenders_were_measured_counts_although_another_has_more_turns(self):
        for _ in range(3):
            self.take()
        for _ in range(5):
            self.turns.add(self.ours, FAR, {SMALL: Sample(7, FULL), LARGE: Sample(7, FULL)})
        self.assertEqual(self.turns.samples()[self.ours][SMALL], [1])

    def test_of_two_paces_alike_the_faster_one_counts(self):
        self.turns.add(self.ours, FAR, {SMALL: Sample(7, FULL)})
        self.turns.add(self.ours, NEAR, {SMALL: Sample(1, FULL)})
        self.assertEqual(self.turns.samples()[self.ours][SMALL], [1])

    def test_what_was_measured_at_a_lower_clock_is_measured_again_and_does_not_count(self):
        self.take(low=[LARGE])
        for _ in range(8):
            self.take()
        self.assertEqual(self.turns.slow(), 1)
        self.assertEqual(self.turns.samples()[self.ours], {SMALL: [1, 1, 1], LARGE: [5, 5]})
        self.assertEqual(self.take(), (self.ours, [LARGE]))
        self.assertIsNone(self.turns.next())

    def test_a_size_that_was_only_measured_at_a_lower_clock_makes_no_table(self):
        for _ in range(9):
            self.take(low=[LARGE] if self.turns.next()[0] is self.ours else [])
        self.assertEqual(self.turns.least(), 0)

    def test_what_no_clock_matters_to_counts_at_any(self):
        self.turns.add(self.ring, NEAR, {SMALL: Sample(3)})
        self.turns.add(self.ours, NEAR, {SMALL: Sample(1, FULL)})
        self.assertEqual(self.turns.samples()[self.ring][SMALL], [3])

    def test_a_size_that_an_algorithm_cannot_do_is_not_asked_of_it(self):
        self.turns = Turns([Algorithm("ours", {SMALL: 1})], [SMALL, LARGE], wanted=1)
        self.assertEqual(self.take()[1], [SMALL])
        self.assertIsNone(self.turns.next())

    def test_one_that_failed_gets_no_further_turn_and_nothing_it_measured_counts(self):
        for _ in range(3):
            self.take()
        self.turns.drop(self.tree)
        self.assertNotIn(self.tree, self.turns.samples())
        self.assertEqual(len(self.turns.counted()), 2)
        self.assertEqual([self.take()[0] for _ in range(4)], 2 * [self.ours, self.ring])
        self.assertIsNone(self.turns.next())

    def test_a_table_without_a_number_of_ours_is_none(self):
        self.assertEqual(self.turns.least(), 0)
        self.turns.add(self.ring, NEAR, {size: Sample(time, FULL) for size, time in self.ring.times.items()})
        self.assertEqual(self.turns.least(), 0)


if __name__ == "__main__":
    main()
