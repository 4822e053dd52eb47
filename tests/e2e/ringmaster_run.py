"""Plays a user of the `ringmaster` command, for the integration tests.

A Run is one `ringmaster run` in a folder of its own. Nothing here sleeps for a guess: every wait looks for an event and has a deadline.
"""
import fcntl
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from testing import BIN, DEADLINE, ROOT, main, output_so_far, processes, wait_until  # noqa: E402

RINGMASTER = str(BIN / "ringmaster")
WEIGHTS = re.compile(r"^weights sha256:([0-9a-f]{64}) steps:(\d+) accuracy:([0-9.]+)$", re.MULTILINE)

# A digits job short enough for a test: 113 steps, a checkpoint every 10.
SHORT = ["--set", "spec.trainer.epochs=5", "--set", "spec.checkpoint.everySteps=10"]
# Long enough to have things happen in its middle on a fast machine too: 1,350 steps of programs built for speed, 450 of programs that a
# sanitizer slows down. A checkpoint every 10.
LONG_EPOCHS = 20 if os.environ.get("RINGMASTER_TEST_SANITIZER") else 60
LONG = ["--set", f"spec.trainer.epochs={LONG_EPOCHS}", "--set", "spec.checkpoint.everySteps=10"]


def environment_of(pid):
    try:
        entries = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return {}
    return dict(entry.decode(errors="replace").split("=", 1) for entry in entries if b"=" in entry)


class Run:
    """`ringmaster run` of a manifest, in `folder`, its output kept."""

    def __init__(self, folder, manifest, *arguments, env=None, preexec_fn=None, command=RINGMASTER):
        self.folder = pathlib.Path(folder)
        self.output = tempfile.TemporaryFile()
        self.process = subprocess.Popen([command, "run", "--plain", str(manifest), *arguments], cwd=self.folder, stdout=self.output,
                                        stderr=subprocess.STDOUT, env={**os.environ, **(env or {})}, preexec_fn=preexec_fn)

    def text(self):
        return output_so_far(self.output)

    def running(self):
        return self.process.poll() is None

    def wait(self):
        """The exit code; fails, with what was printed, when it takes too long."""
        try:
            return self.process.wait(timeout=DEADLINE)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"the run did not end:\n{self.text()}")

    def result(self):
        """(digest, steps, accuracy) of a run that succeeded."""
        code = self.wait()
        match = WEIGHTS.search(self.text())
        if code != 0 or not match:
            raise AssertionError(f"exit code {code}:\n{self.text()}")
        return match.group(1), int(match.group(2)), float(match.group(3))

    def kill(self):
        self.process.kill()
        self.process.wait()

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)

    def workers(self, program="ringmaster-train"):
        """{index: pid} of the run's trainers, or of its launchers."""
        everything = list(processes())
        launchers = {pid for pid, parent, command in everything
                     if parent == self.process.pid and command and command[0].endswith("ringmaster-launcher")}
        found = {}
        for pid, parent, command in everything:
            if command and command[0].endswith(program) and (pid in launchers or parent in launchers):
                name = environment_of(pid).get("RINGMASTER_POD_NAME", "")
                match = re.fullmatch(r".*-(\d+)-(\d+)", name)
                if match:
                    found[int(match.group(1))] = pid
        return found

    def job(self, name="digits"):
        """The stored object, or {} while there is none."""
        answer = ringmaster(self.folder, "get", name, "-o", "json")
        return json.loads(answer.stdout) if answer.returncode == 0 and answer.stdout.startswith("{") else {}

    def step(self, name="digits"):
        return self.job(name).get("status", {}).get("progress", {}).get("step", 0)

    def wait_for_step(self, step, name="digits"):
        def reached():
            if not self.running():
                raise AssertionError(f"the run ended before step {step}:\n{self.text()}")
            return self.step(name) >= step
        wait_until(reached, f"step {step}")


def ringmaster(folder, *arguments, env=None):
    return subprocess.run([RINGMASTER, *arguments], cwd=folder, capture_output=True, text=True, timeout=DEADLINE, env={**os.environ, **(env or {})})


class RunTest(unittest.TestCase):
    """A test case with a folder of its own, and nothing left of it afterwards."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ringmaster-test-"))
        self.runs = []

    def tearDown(self):
        for run in self.runs:
            if run.running():
                run.kill()
            run.output.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def run_job(self, manifest, *arguments, folder=None, **options):
        run = Run(folder or self.folder, manifest, *arguments, **options)
        self.runs.append(run)
        return run

    def digits(self, *arguments, **options):
        return self.run_job(ROOT / "examples/digits/job.yaml", *arguments, **options)

    def fresh_folder(self):
        return pathlib.Path(tempfile.mkdtemp(dir=self.folder))

    def undisturbed(self, *arguments):
        """The result of the job when nothing happens to it. The tests of one build run each such job once between them."""
        digits = ROOT / "examples/digits"
        stamps = [(str(path), path.stat().st_mtime_ns) for path in (*sorted(BIN.iterdir()), digits / "job.yaml", digits / "digits.csv")]
        key = hashlib.sha256(json.dumps([arguments, stamps]).encode()).hexdigest()[:16]
        kept = BIN.parent / "undisturbed-runs"
        kept.mkdir(exist_ok=True)
        with open(kept / key, "a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            text = file.read()
            if text:
                return tuple(json.loads(text))
            result = self.digits(*arguments, folder=self.fresh_folder()).result()
            file.write(json.dumps(result))
            return result
