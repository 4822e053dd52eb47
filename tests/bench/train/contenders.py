"""Who takes part: ours, a process for each turn, and PyTorch's ways of training, each a process that waits between its turns."""
import hashlib
import json
import os
import pathlib
import select
import subprocess
import sys
import time
import venv

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
BIN = pathlib.Path(os.environ.get("RINGMASTER_BIN_DIR", ROOT / "build/release/bin"))
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "ringmaster"
REQUIREMENTS = HERE / "requirements.txt"

MODES = ("eager", "channels-last", "compile")
PATIENCE = 300  # seconds beyond its own that a contender may take: torch.compile starts a compiler for each kernel

# What may differ in the first loss, in a gradient as a share of its largest element, and in the losses of ten steps.
LOSS, GRADIENT, LOSSES = 1e-5, 1e-3, 1e-4


class Wrong(Exception):
    """A result that means nothing."""


class Failed(Exception):
    """A way of training with PyTorch that does not work here: it is out."""


def python():
    """The interpreter of an environment with PyTorch, made in the user's cache where there is none."""
    digest = hashlib.sha256(REQUIREMENTS.read_bytes() + sys.version.encode()).hexdigest()[:12]
    folder = CACHE / f"torch-{digest}"
    interpreter, complete = folder / "bin/python", folder / "complete"
    if not complete.exists():
        print(f"installing PyTorch into {folder}, once: some gigabytes", file=sys.stderr)
        venv.create(folder, clear=True, with_pip=True)
        subprocess.run([interpreter, "-m", "pip", "install", "--quiet", "-r", REQUIREMENTS], check=True)
        subprocess.run([interpreter, "-c", "import torch"], check=True)
        complete.touch()
    return interpreter


class Ringmaster:
    name = "ringmaster"

    def __init__(self, network, batch, threads):
        self.command = [BIN / "ringmaster-bench-train", "--model", network, "--batch", str(batch), "--threads", str(threads), "--dtype", "f32"]

    def dump(self, path):
        self.execute("--dump", path)

    def turn(self, seconds):
        return json.loads(self.execute("--json", "--seconds", str(seconds)))

    def execute(self, *more):
        done = subprocess.run([*self.command, *more], capture_output=True, text=True, check=False, timeout=PATIENCE)
        if done.returncode != 0:
            raise Wrong(f"ringmaster: exit code {done.returncode}: {done.stderr.strip()}")
        return done.stdout


class Torch:
    def __init__(self, interpreter, network, mode, threads, dump):
        self.name = mode
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "TORCHINDUCTOR_CACHE_DIR": str(CACHE / "torchinductor")}
        # Set by machines whose OpenBLAS is too old for their processor; they would slow numpy and nothing else here needs them.
        for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
            environment.pop(name, None)
        self.log = open(dump.parent / f"{network}-{mode}.log", "w+", encoding="utf-8")
        self.process = subprocess.Popen([interpreter, HERE / "peer.py", network, mode, str(threads), dump], env=environment, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log)

    def verify(self):
        """What it found, beside the dump; Wrong where that is too far away."""
        found = self.hear(0)
        worst = max(found["gradients"], key=found["gradients"].get)
        for what, value, most in (("first loss", found["loss"], LOSS), (f"gradient of {worst}", found["gradients"][worst], GRADIENT),
                                  ("losses of ten steps", found["losses"], LOSSES)):
            if not value <= most:  # a NaN is wrong, too
                raise Wrong(f"{self.name}: the {what} differ by {value:.2g}, at most {most:.0e} is allowed")
        return {"version": found["version"], "loss": found["loss"], "gradient": found["gradients"][worst], "losses": found["losses"]}

    def turn(self, seconds):
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        return self.hear(seconds)

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
