"""Who takes part: each contender runs one program over a list of sizes and returns microseconds by size."""
import json
import math
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[3]
BIN = pathlib.Path(os.environ.get("RINGMASTER_BIN_DIR", ROOT / "build/release/bin"))
PROGRAMS = BIN.parent / "tests"
PATIENCE = 30  # seconds that one program may take for all its sizes
SUMS_PATIENCE = 120  # one that calls two operations, in as many turns of the large ones as of the small ones

GLOO = ("ring", "bcube", "halving_doubling", "ring_chunked", "halving_doubling_polling", "ring_chunked_polling")
SHARE = {"auto": "ordered sum / allreduce", "tcp": "ordered sum / allreduce over TCP"}  # by the transport of both

# The values of coll_tuned_allreduce_algorithm; 0 lets Open MPI choose.
TUNED = ("chosen by itself", "basic linear", "nonoverlapping", "recursive doubling", "ring", "segmented ring", "Rabenseifner")


def calls(size):
    return max(3, min(1000, (64 << 20) // size))


class Wrong(Exception):
    """A result that means nothing: values that are wrong, or a program that failed."""


class Failed(Wrong):
    """A program that failed or hung: of a peer, this algorithm is out."""


class Sample(float):
    """A time, or a part of one, and how long a step of arithmetic took meanwhile, in nanoseconds; None: that does not matter."""

    def __new__(cls, value, step=None):
        sample = super().__new__(cls, value)
        sample.step = step
        return sample


class Contender:
    may_fail = True  # then it is out; no number of a run in which ours fails means anything

    def __init__(self, peer, algorithm, command, environment=None, largest=math.inf, patience=PATIENCE):
        self.peer, self.algorithm, self.command, self.patience = peer, algorithm, command, patience
        self.largest = largest  # bytes that it can do at all
        self.environment = {**os.environ, **(environment or {})}

    def sizes(self, wanted):
        return [size for size in wanted if size <= self.largest]

    def run(self, sizes):
        """{bytes: Sample of microseconds}."""
        text = ",".join(f"{size}:{calls(size)}" for size in sizes)
        done = execute([*self.command, text], f"{self.peer}, {self.algorithm}", self.environment, self.patience)
        times = {}
        for row in self.rows(done):
            if row["wrong"] != 0:
                raise Wrong(f"{self.peer}, {self.algorithm}: {row['wrong']} wrong values at {row['size']} bytes")
            times[row["size"]] = Sample(row["time_us"], row["step_ns"])
        if set(times) != set(sizes):
            raise Wrong(f"{self.peer}, {self.algorithm}: measured {sorted(times)}, not {sorted(sizes)}")
        return times

    def rows(self, text):
        return [json.loads(line) for line in text.splitlines()]


class Ringmaster(Contender):
    may_fail = False

    def __init__(self, ranks, transport, algorithm, *flags, operation="allreduce", name=None, patience=PATIENCE):
        super().__init__(name or f"ringmaster-{transport}", algorithm, [BIN / "ringmaster-bench-collectives", "--op", operation, "--json", "--transport", transport,
                                           "--ranks", str(ranks), *flags, "--sizes"], patience=patience)

    def rows(self, text):
        return [{"size": row["size"], **row["in_place"]} for row in json.loads(text)["rows"]]


def execute(command, who, environment=None, patience=PATIENCE):
    program = pathlib.Path(command[0])
    if program.is_absolute() and not program.exists():
        raise Wrong(f"{who}: {program} was not built: `make bench-collectives` installs what it needs (tests/bench/collectives/debian-packages.txt)")
    # Ends the ranks too, which a kill of the program alone would leave behind.
    done = subprocess.run(["timeout", "--kill-after=2", str(patience), *command], env=environment, capture_output=True, text=True, check=False)
    if done.returncode in (124, 137):
        raise Failed(f"{who}: not done after {patience:.0f} s")
    if done.returncode != 0:
        raise Failed(f"{who}: exit code {done.returncode}: {done.stderr.strip()[-2000:]}")
    return done.stdout


class Limits:
    """What memory and sockets carry at all, by name, in turns with the others."""
    peer, algorithm, may_fail = "machine", "limits", False

    def __init__(self, ranks):
        self.ranks = ranks

    def sizes(self, _wanted):
        return ["memcpy_gbs", "socket_gbs", "socket_us", "line_us"]

    def run(self, names):
        measured = json.loads(execute([PROGRAMS / "machine_limits", str(self.ranks)], "machine_limits"))
        return {name: Sample(measured[name]) for name in names}


def line():
    """Microseconds that a line of the cache takes between two processors."""
    return json.loads(execute([PROGRAMS / "machine_limits", "2", "line"], "machine_limits"))["line_us"]


def gloo(ranks):
    # Two ranks that poll both write before they read: what no longer fits into the sockets stands still until the time-out.
    return [Contender("gloo", name, [PROGRAMS / "gloo_allreduce", str(ranks), name], largest=1 << 20 if name.endswith("_polling") else math.inf)
            for name in GLOO]


def mpi(ranks):
    """Over shared memory, as mpirun does by itself."""
    environment = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    start = ["mpirun", "-n", str(ranks), "--oversubscribe"]
    program = [PROGRAMS / "mpi_allreduce"]
    found = [Contender("mpi", name, start + (["--mca", "coll_tuned_use_dynamic_rules", "1", "--mca", "coll_tuned_allreduce_algorithm", str(number)]
                                             if number else []) + program, environment) for number, name in enumerate(TUNED)]
    found.append(Contender("mpi", "coll/sm", start + ["--mca", "coll_sm_priority", "100"] + program, environment))
    return found


class OrderedSum(Ringmaster):
    """The ordered sum and an allreduce, in turns of the same ranks, neither over its input; the value is the one's time as a part of the other's."""

    def __init__(self, ranks, transport, *flags):
        super().__init__(ranks, transport, "chosen by itself", "--beside", "allreduce", *flags, operation="ordered-sum", name=SHARE[transport], patience=SUMS_PATIENCE)

    def rows(self, text):
        return [{"size": row["size"], "time_us": row["beside"]["ratio"], "wrong": row["out_of_place"]["wrong"] + row["beside"]["wrong"],
                 "step_ns": row["out_of_place"]["step_ns"]} for row in json.loads(text)["rows"]]


def ours(ranks):
    return [one for transport in SHARE for one in (Ringmaster(ranks, transport, "chosen by itself"), OrderedSum(ranks, transport))]


def sums(ranks, shards):
    """The ordered sum of so many shards."""
    return [OrderedSum(ranks, transport, "--shards", str(shards)) for transport in SHARE]


def bare_sockets(ranks):
    return Contender("sockets", "ring", [PROGRAMS / "socket_ring", str(ranks)])


PEERS = {"gloo": gloo, "mpi": mpi}
