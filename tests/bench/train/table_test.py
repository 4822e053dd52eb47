#!/usr/bin/env python3
"""What stands out in the table of training steps: what is slower, larger or later than was asked for."""
import pathlib
import sys
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[2] / "support")]
import table  # noqa: E402
from testing import main  # noqa: E402

COLUMNS = ("network", "turns", "rate", "step", "ready", "share", "eager", "channels-last", "compile", "ratio", "memory")


def cells(network, batch=32, ours=1.0, ready=1.0, limit=None, memory=50, **peers):
    peers = {name.replace("_", "-"): seconds for name, seconds in peers.items()}
    case = {"network": network, "batch": batch, "rounds": 2, "step_seconds": {"ringmaster": ours, **peers}, "ready_seconds": ready, "first_step_extra_seconds": 0.5,
            "peak_bytes": {"ringmaster": memory, **{name: 100 for name in peers}}}
    if limit:
        case["limit"] = limit
    return dict(zip(COLUMNS, (cell.strip() for cell in table.row(case).strip("|").split("|")), strict=True))


class TrainingSteps(unittest.TestCase):
    def test_the_ratio_is_that_to_the_fastest_way_of_pytorch(self):
        row = cells("lenet", eager=9, channels_last=3, compile=4)
        self.assertEqual(row["ratio"], "3.00")
        self.assertEqual(cells("lenet", eager=9, channels_last=2.99)["ratio"], "**2.99** (asked: 3)")
        self.assertEqual(row["eager"], "3.56 samples/s")
        self.assertEqual(cells("gpt-2", eager=2)["channels-last"], "–")

    def test_a_network_may_be_slower_than_asked_for_where_its_arithmetic_is_the_limit(self):
        self.assertEqual(cells("alexnet", limit=32 / 0.91, eager=1.2)["ratio"], "1.20")
        self.assertEqual(cells("alexnet", limit=32 / 0.89, eager=1.2)["ratio"], "**1.20** (asked: 1.3, or 90% of its arithmetic's rate)")
        self.assertEqual(cells("gpt-2", limit=32 / 0.95, eager=1.19)["ratio"], "**1.19** (asked: 1.2)")

    def test_resnet_50_is_to_reach_its_share_of_the_arithmetics_rate_and_to_be_ready_soon(self):
        row = cells("resnet-50", limit=32 / 0.74, ready=2.01, eager=2)
        self.assertEqual(row["share"], "**74%** (asked: 75%)")
        self.assertEqual(row["ready"], "**2.01 s, 500.00 ms** (asked: 2.00 s)")
        row = cells("resnet-50", limit=32 / 0.75, ready=2, eager=2)
        self.assertEqual((row["share"], row["ready"]), ("75%", "2.00 s, 500.00 ms"))
        self.assertEqual(cells("gpt-2", ready=9, eager=2)["ready"], "9.00 s, 500.00 ms")

    def test_memory_is_compared_with_the_way_that_needs_least(self):
        self.assertEqual(cells("vgg-16", memory=70, eager=2, compile=2)["memory"], "0.70")
        self.assertEqual(cells("vgg-16", memory=71, eager=2, compile=2)["memory"], "**0.71** (asked: 0.7)")

    def test_a_network_whose_steps_allocate_stands_out(self):
        quiet, loud = {"network": "lenet", "most_allocations": 0}, {"network": "gpt-2", "most_allocations": 3}
        self.assertTrue(table.allocations([quiet, quiet]).endswith("at most: none."))
        self.assertTrue(table.allocations([quiet, loud]).endswith("at most: **gpt-2 3** (asked: none)."))

    def test_a_step_of_the_perceptron_may_take_60_microseconds(self):
        self.assertEqual(cells("mlp", ours=60e-6, eager=1)["step"], "60 µs")
        self.assertEqual(cells("mlp", ours=61e-6, eager=1)["step"], "**61 µs** (asked: 60 µs)")


if __name__ == "__main__":
    main()
