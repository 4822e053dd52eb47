"""Which turns, and which values of a turn, are to be compared.

A virtual machine's processors may be near one another in one second and far in the next: a turn's pace is how long a line of the cache takes
from one processor to another, in microseconds, before it and after it. And their clock may be lower for a tenth of a second or for minutes:
beside each value stands how long a step of plain arithmetic took before it was measured, or after it.
"""
import math
import statistics

SAME = 2.5  # times as long is still the same pace; near and far are four and more apart
SAME_CLOCK = 1.25  # times as long is still the same clock


def is_steady(paces):
    """Whether the machine was the same before a turn and after it."""
    return max(paces) <= SAME * min(paces)


def groups(turns):
    """Steady turns of one pace, for each pace, the fastest first: indices into `turns`, which are lists of paces."""
    steady = [i for i, paces in enumerate(turns) if is_steady(paces)]
    pace = {i: statistics.median(turns[i]) for i in steady}
    return [[other for other in steady if pace[i] <= pace[other] <= SAME * pace[i]] for i in sorted(steady, key=pace.get)]


def longest_step(steps):
    """How long a step may have taken beside a value that counts, of those beside all values; the clock was full beside a quarter of them at least."""
    known = sorted(step for step in steps if step is not None)
    return SAME_CLOCK * known[len(known) // 4] if known else math.inf
