"""Whose turn it is: all contenders measure each of their sizes, twice, and then those that came near their peer's best do it again, until
each of these has as many turns as are to count. Only turns of one pace count, of the pace at which most contenders have some, and of these
only what was measured at the full clock (pace.py).
"""
import statistics

import pace

NEAR = 1.3  # an algorithm this much slower than its peer's best is out, at that size
FAIR = 2  # turns before that is asked: a single one may be slow by chance


class Turns:
    def __init__(self, contenders, sizes, wanted):
        self.sizes = {one: one.sizes(sizes) for one in contenders}
        self.wanted = wanted
        self.taken = []  # (contender, paces before and after, {size: value with its step})

    def add(self, contender, paces, values):
        self.taken.append((contender, paces, values))

    def drop(self, contender):
        """It failed: it gets no further turn, and what it measured before counts no more."""
        del self.sizes[contender]
        self.taken = [turn for turn in self.taken if turn[0] is not contender]

    def counted(self):
        groups = pace.groups([paces for _, paces, _ in self.taken])
        return [self.taken[i] for i in max(groups, key=lambda group: (len({self.taken[i][0] for i in group}), len(group)), default=[])]

    def samples(self):
        """Contender -> size -> values, of the turns that count, at the full clock."""
        found = {one: {size: [] for size in sizes} for one, sizes in self.sizes.items()}
        counted = self.counted()
        longest = pace.longest_step(value.step for _, _, values in counted for value in values.values())
        for contender, _, values in counted:
            for size, value in values.items():
                if value.step is None or value.step <= longest:
                    found[contender][size].append(value)
        return found

    def slow(self):
        """How many values of the turns that count do not, as the clock was lower."""
        measured = sum(len(values) for _, _, values in self.counted())
        return measured - sum(len(values) for by_size in self.samples().values() for values in by_size.values())

    def next(self):
        """(contender, sizes) that has taken the fewest turns, of these the one whose last one was first; None when each has enough that count."""
        samples = self.samples()
        due = {one: sizes for one, sizes in ((one, self.due(one, samples)) for one in samples) if sizes}
        taken = [contender for contender, _, _ in self.taken]
        last = {contender: i for i, contender in enumerate(taken)}
        chosen = min(due, key=lambda one: (taken.count(one), last.get(one, -1)), default=None)
        return (chosen, due[chosen]) if chosen else None

    def due(self, contender, samples):
        return [size for size, values in samples[contender].items()
                if len(values) < self.wanted and (len(values) < FAIR or is_near(contender, size, samples))]

    def least(self):
        """How many turns each number of a table is at least the median of; 0 where one of a contender that may not fail is missing."""
        samples = self.samples()
        return min(len(values) for one in samples for size, values in samples[one].items()
                   if is_near(one, size, samples) or not (values or one.may_fail))

    def missing(self):
        """Those that were never measured at the pace and clock that count."""
        return [one for one, sizes in self.samples().items() if not any(sizes.values())]


def is_near(contender, size, samples):
    if not samples[contender][size]:
        return False
    best = min(statistics.median(values[size]) for one, values in samples.items() if one.peer == contender.peer and values.get(size))
    return statistics.median(samples[contender][size]) <= NEAR * best
