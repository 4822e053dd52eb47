"""Which rounds are to be compared: a virtual machine's processors may be near one another in one minute and far in the next.

A round's pace is how long a line of the cache takes from one processor to another, in microseconds, before each turn and after the last.
"""
import statistics

SAME = 2.5  # times as long is still the same pace; near and far are four and more apart


def is_steady(paces):
    """Nobody in the round met another machine than the others."""
    return max(paces) <= SAME * min(paces)


def alike(rounds):
    """The largest group of steady rounds of one pace, the faster one of two that are as large: indices into `rounds`, which are lists of paces."""
    steady = [i for i, paces in enumerate(rounds) if is_steady(paces)]
    pace = {i: statistics.median(rounds[i]) for i in steady}
    groups = [[other for other in steady if pace[i] <= pace[other] <= SAME * pace[i]] for i in sorted(steady, key=pace.get)]
    return max(groups, key=len, default=[])
