"""How many cases were compared, and what is wrong with which. Needs no PyTorch."""
import contextlib


class Unlike(Exception):
    """What was computed is not what PyTorch computes."""


class Tally:
    def __init__(self):
        self.cases = 0
        self.failures = []

    @contextlib.contextmanager
    def case(self, name):
        """Counts a case. Whatever is raised in it fails it alone, and the next one goes on: it may be of an op that ops.py does not know."""
        self.cases += 1
        try:
            yield
        except Unlike as error:
            self.failures.append(f"{name}: {error}")
        except Exception as error:
            self.failures.append(f"{name}: {type(error).__name__}: {error}")

    def summary(self):
        return f"{self.cases - len(self.failures)} alike, {len(self.failures)} not"
