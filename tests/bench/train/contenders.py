"""Who takes part: ours, a process for each turn, and PyTorch's ways of training, each a process that waits between its turns."""
import json
import os
import pathlib
import select
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "pytorch"))
import environment  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
BIN = pathlib.Path(os.environ.get("RINGMASTER_BIN_DIR", ROOT / "build/release/bin"))

MODES = ("eager", "channels-last", "compile")
PATIENCE = 300  # seconds beyond its own that a contender may take: torch.compile starts a compiler for each kernel

# What may differ in the first loss, in a gradient as a share of its largest element, and in the losses of all steps.
LOSS, GRADIENT, LOSSES = 1e-5, 1e-3, 1e-4
# Where rounding alone makes more of a difference (a deep network with ReLU: what is near 0 falls on the one side or the other, and PyTorch's own f32
# is 0.2 away from its f64 in an element): how much further from PyTorch in double we may be than PyTorch in f32 is.
FURTHER = 2


class Wrong(Exception):
    """A result that means nothing."""


class Failed(Exception):
    """A way of training with PyTorch that does not work here: it is out."""


class Ringmaster:
    name = "ringmaster"

    def __init__(self, network, batch, threads):
        self.command = [BIN / "ringmaster-bench-train", "--model", network, "--batch", str(batch), "--threads", str(threads), "--dtype", "f32"]

    def dump(self, path, steps):
        self.execute("--dump", path, "--dump-steps", str(steps))

    def turn(self, seconds):
        return json.loads(self.execute("--json", "--seconds", str(seconds)))

    def limit(self):
        """Samples per second of the convolutions and matrix products alone."""
        return json.loads(self.execute("--json", "--limit"))["limit_samples_per_second"]

    def execute(self, *more):
        done = subprocess.run([*self.command, *more], capture_output=True, text=True, check=False, timeout=PATIENCE)
        if done.returncode != 0:
            raise Wrong(f"ringmaster: exit code {done.returncode}: {done.stderr.strip()}")
        return done.stdout


class Torch:
    def __init__(self, interpreter, network, mode, threads, dump):
        self.name = mode
        variables = {**environment.variables(), "OMP_NUM_THREADS": str(threads), "TORCHINDUCTOR_CACHE_DIR": str(environment.CACHE / "torchinductor")}
        self.log = open(dump.parent / f"{network}-{mode}.log", "w+", encoding="utf-8")
        self.process = subprocess.Popen([interpreter, HERE / "peer.py", network, mode, str(threads), dump], env=variables, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log)

    def verify(self):
        """What it found, beside the dump; Wrong where that is too far away. The process has warmed up then, and does nothing until its first turn."""
        result = self.compare()
        self.hear(0)
        return result

    def compare(self):
        """What the process found, beside the dump; it goes on to warm up."""
        found = self.hear(0)
        worst = max(found["gradients"], key=found["gradients"].get)
        result = {"version": found["version"], "loss": found["loss"], "gradient": found["gradients"][worst], "losses": found["losses"]}
        # A NaN is not near.
        near = {"loss": found["loss"] <= LOSS, "gradient": found["gradients"][worst] <= GRADIENT, "losses": found["losses"] <= LOSSES}
        self.tell("go" if all(near.values()) else "double")
        if all(near.values()):
            return result
        result["double"] = self.hear(0)
        for what, (ours, own) in result["double"].items():
            if not near[what] and not ours <= FURTHER * own:
                raise Wrong(f"{self.name}: ours is {ours:.2g} away from PyTorch in double ({what}), {self.name} in f32 {own:.2g}; the worst gradient "
                            f"is {worst}'s")
        return result

    def turn(self, seconds):
        self.tell(seconds)
        return self.hear(seconds)

    def tell(self, line):
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def hear(self, seconds):
        deadline = time.monotonic() + seconds + PATIENCE
        ready, _, _ = select.select([self.process.stdout], [], [], deadline - time.monotonic())
        line = self.process.stdout.readline() if ready else ""
        if line:
            return json.loads(line)
        self.log.seek(0)
        raise Failed(f"{self.name}: {'ended' if ready else 'not done in time'}: {self.log.read()[-1500:].strip()}")

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.log.close()
