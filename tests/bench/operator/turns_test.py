#!/usr/bin/env python3
"""That the benchmark is fair: all take turns, and the plain client has as many calls in flight as the operator."""
import pathlib
import re
import unittest

import world  # noqa: F401  first: it says where modules are looked for
import contenders
from testing import main


class TurnsTest(unittest.TestCase):
    def test_each_round_has_all_and_begins_with_another(self):
        order = list(contenders.in_turns(["a", "b", "c", "d"], 3))
        self.assertEqual(order, [*"abcd", *"bcda", *"cdab"])
        self.assertEqual(list(contenders.in_turns(["plain", "ours"], 2)), ["plain", "ours", "ours", "plain"])

    def test_the_plain_client_has_as_many_calls_in_flight_as_the_operator_makes_and_the_readme_says_so(self):
        readme = (pathlib.Path(__file__).parent / "README.md").read_text(encoding="utf-8")
        calls, jobs, workers = map(int, re.search(r"(\d+) calls in flight.*? for (\d+) jobs .*? of (\d+) workers", readme).groups())
        self.assertEqual((calls, workers), (contenders.in_flight(), contenders.WORKERS))
        self.assertEqual(calls, jobs * workers)


if __name__ == "__main__":
    main()
