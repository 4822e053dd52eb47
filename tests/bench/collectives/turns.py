"""Whose turn it is: all contenders measure each of their sizes, and then those that came near their peer's best do it again, until each
of these has as many turns as are to count. Only turns of one pace count (pace.py); a turn at another pace is taken again.
"""
import statistics

import pace

NEAR = 1.3  # an algorithm this much slower than its peer's best is out, at that size


class Turns:
    def __init__(self, contenders, sizes, wanted):
        self.sizes = {one: one.sizes(sizes) for one in contenders}
        self.wanted = wanted
        self.taken = []  # (contender, paces before and after, {size: value})

    def add(self, contender, paces, values):
        self.taken.append((contender, paces, values))

    def drop(self, contender):
        """It failed: it gets no further turn, and what it measured before counts no more."""
        del self.sizes[contender]

    def counted(self):
        return [self.taken[i] for i in pace.alike([paces for _, paces, _ in self.taken])]

    def samples(self):
        """Contender -> size -> values, of the turns that count."""
        found = {one: {size: [] for size in sizes} for one, sizes in self.sizes.items()}
        for contender, _, values in self.counted():
            for size, value in values.items():
                found.get(contender, {}).get(size, []).append(value)
        return found

    def next(self):
        """(contender, sizes) that has had the fewest turns, of these the one whose last one was first; None when each has had enough."""
        samples = self.samples()
        due = {one: sizes for one, sizes in ((one, self.due(one, samples)) for one in samples) if sizes}
        last = {contender: i for i, (contender, _, _) in enumerate(self.taken)}
        chosen = min(due, key=lambda one: (min(len(samples[one][size]) for size in due[one]), last.get(one, -1)), default=None)
        return (chosen, due[chosen]) if chosen else None

    def due(self, contender, samples):
        return [size for size, values in samples[contender].items()
                if len(values) < self.wanted and (not values or is_near(contender, size, samples))]

    def least(self):
        """How many turns each number of a table is at least the median of."""
        samples = self.samples()
        return min(len(values) for one in samples for size, values in samples[one].items() if not values or is_near(one, size, samples))


def is_near(contender, size, samples):
    best = min(statistics.median(values[size]) for one, values in samples.items() if one.peer == contender.peer and values.get(size))
    return statistics.median(samples[contender][size]) <= NEAR * best
