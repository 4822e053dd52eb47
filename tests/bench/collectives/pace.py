"""Which turns are to be compared: a virtual machine's processors may be near one another in one second and far in the next.

A turn's pace is how long a line of the cache takes from one processor to another, in microseconds, before it and after it.
"""
import statistics

SAME = 2.5  # times as long is still the same pace; near and far are four and more apart


def is_steady(paces):
    """Whether the machine was the same before a turn and after it."""
    return max(paces) <= SAME * min(paces)


def groups(turns):
    """Steady turns of one pace, for each pace, the fastest first: indices into `turns`, which are lists of paces."""
    steady = [i for i, paces in enumerate(turns) if is_steady(paces)]
    pace = {i: statistics.median(turns[i]) for i in steady}
    return [[other for other in steady if pace[i] <= pace[other] <= SAME * pace[i]] for i in sorted(steady, key=pace.get)]
