#!/usr/bin/env python3
"""What stands out in the benchmark's tables: what is slower than was asked for."""
import pathlib
import sys
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[2] / "support")]
import contenders  # noqa: E402
import table  # noqa: E402
from testing import main  # noqa: E402

SIZE = 1 << 20


def sums(ranks, shards, share, over_tcp=1):
    samples = [{"peer": contenders.SHARE[transport], "algorithm": "chosen by itself", "values": {SIZE: [value]}}
               for transport, value in (("auto", share), ("tcp", over_tcp))]
    return {"ranks": ranks, "shards": shards, "machine": "a machine", "turns": 2, "left_out": 0, "slow": 0, "sizes": [SIZE], "samples": samples}


class OrderedSums(unittest.TestCase):
    def cells(self, *results):
        return [cell.strip() for cell in table.of_ordered_sum(sums(*results)).splitlines()[-1].split("|")[2:-1]]

    def test_shards_that_are_not_aligned_may_take_60_percent_longer(self):
        self.assertEqual(self.cells(3, 8, 1.6), ["1.60", "1.00"])
        self.assertEqual(self.cells(3, 8, 1.61), ["**1.61** (asked: 1.6)", "1.00"])

    def test_aligned_shards_may_take_10_percent_longer(self):
        self.assertEqual(self.cells(3, 12, 1.1), ["1.10", "1.00"])
        self.assertEqual(self.cells(3, 12, 1.11), ["**1.11** (asked: 1.1)", "1.00"])

    def test_what_takes_longer_over_tcp_stands_out_by_itself(self):
        self.assertEqual(self.cells(2, 8, 1.0, 1.11), ["1.00", "**1.11** (asked: 1.1)"])

    def test_shards_are_aligned_where_each_rank_has_the_same_power_of_two(self):
        self.assertTrue(table.is_aligned(3, 12))
        self.assertTrue(table.is_aligned(4, 4))
        self.assertFalse(table.is_aligned(3, 8))
        self.assertFalse(table.is_aligned(3, 9))

    def test_the_table_says_what_was_measured(self):
        self.assertTrue(table.of_ordered_sum(sums(3, 8, 1.5)).startswith("8 shards among 3 ranks, not aligned, on a machine; medians of turns: 2."))


class Hosts(unittest.TestCase):
    def cells(self, **busbw):
        kinds = {"one": "one rank a host", "flat": "two ranks a host, flat", "two_level": "two ranks a host, two-level"}
        results = [{"rate": "1gbit", "goodput": 1.0, "busbw": {kinds[kind]: {SIZE: value} for kind, value in busbw.items()}}]
        return [line.split("|")[-2].strip() for line in table.of_hosts(results).splitlines()[4:]]

    def test_two_level_that_is_not_faster_than_flat_stands_out(self):
        self.assertEqual(self.cells(one=1, flat=0.9, two_level=0.95), ["1.000 (100 %)", "0.900 (90 %)", "0.950 (95 %)"])
        self.assertEqual(self.cells(one=1, flat=1.1, two_level=1.0)[2], "1.000 (**100 %**)")

    def test_one_rank_a_host_that_is_slower_than_the_links_allow_stands_out(self):
        self.assertEqual(self.cells(one=0.95), ["0.950 (95 %)"])
        self.assertEqual(self.cells(one=0.94), ["0.940 (**94 %**)"])


if __name__ == "__main__":
    main()
