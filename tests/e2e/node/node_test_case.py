"""Plays a user of a cluster with two real nodes (tests/cluster/node.py), from inside their namespaces: kubectl, helm, and the power to kill."""
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

import yaml

TESTS = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TESTS / folder) for folder in ("support", "cluster", "charts", "integration/kubernetes", "e2e")]
from cluster_test_case import kubectl  # noqa: E402
from node import REGISTRY, SANDBOX_IMAGE  # noqa: E402,F401
from ringmaster_run import RINGMASTER, WEIGHTS  # noqa: E402
from testing import ROOT, main, processes, wait_until  # noqa: E402,F401

SYSTEM = "ringmaster-system"
IMAGES = f"{REGISTRY}/team"  # where `install` pushes images and chart
CHARTS = pathlib.Path("/run/charts")  # what it pushed
DIGITS = ROOT / "examples/digits/job.yaml"
PATIENCE = 240  # seconds for any one wait
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
LONG = {"epochs": 60}  # 1,349 steps: time for something to happen in the middle


class NodeTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="ringmaster-node-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)

    def setUp(self):
        made = kubectl("create", "-o", "json", "-f", "-", stdin=json.dumps(namespace()))
        self.namespace = json.loads(made)["metadata"]["name"]
        self.addCleanup(kubectl, "delete", "namespace", self.namespace, "--wait=false")

    def _callTestMethod(self, method):
        try:
            super()._callTestMethod(method)
        except Exception:
            print(self.picture(), flush=True)
            raise

    def picture(self):
        """What a user would look at when something is wrong."""
        looks = [("get", "tj,pods", "-o", "wide"), ("get", "tj", "-o", "yaml"), ("get", "events", "--sort-by=.metadata.creationTimestamp"),
                 ("logs", "--prefix", "--tail=30", "--selector=training.ringmaster.dev/job"),
                 ("logs", "--prefix", "--tail=60", f"--namespace={SYSTEM}", "--selector=app.kubernetes.io/component=operator")]
        return "\n".join(self.kubectl(*look, check=False)[1] for look in looks)

    def kubectl(self, *arguments, **options):
        return kubectl("--namespace", self.namespace, *arguments, **options)

    def get(self, kind, *names, namespace=None):
        return json.loads(kubectl("--namespace", namespace or self.namespace, "get", kind, *names, "-o", "json"))

    # Jobs.

    def apply(self, job):
        self.kubectl("apply", "-f", "-", stdin=json.dumps(job))

    def long_job(self, change=lambda job: None):
        """Starts the example, trained longer, with checkpoints on a volume that both nodes have. Returns what a laptop ends with."""
        job = yaml.safe_load(DIGITS.read_text())
        job["spec"]["trainer"].update(LONG)
        expected = self.on_laptop(json.dumps(job))
        job["spec"]["checkpoint"]["volume"] = {"persistentVolumeClaim": {"claimName": self.make_volume()}}
        change(job)
        self.apply(job)
        return expected

    def on_laptop(self, manifest):
        """(digest, steps) of `ringmaster run` with that manifest. Run once for all tests of a cluster: /run is forgotten with it."""
        kept = pathlib.Path("/run/on-laptop-" + hashlib.sha256(manifest.encode()).hexdigest()[:16])
        if not kept.exists():
            folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
            shutil.copy(DIGITS.with_name("digits.csv"), folder)
            (folder / "job.yaml").write_text(manifest)
            done = subprocess.run([RINGMASTER, "run", "--plain", "job.yaml"], cwd=folder, capture_output=True, text=True, timeout=PATIENCE)
            match = WEIGHTS.search(done.stdout)
            self.assertTrue(match, done.stdout + done.stderr)
            kept.write_text(json.dumps([match[1], int(match[2])]))
        return tuple(json.loads(kept.read_text()))

    def make_volume(self):
        """A claim of a folder that all nodes share and everybody may write."""
        name = f"checkpoints-{self.namespace}"
        folder = pathlib.Path("/run", name)
        folder.mkdir()
        folder.chmod(0o777)
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        self.addCleanup(kubectl, "delete", "persistentvolume", name, "--wait=false")
        size, modes = {"storage": "1Gi"}, ["ReadWriteMany"]
        self.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": [
            {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {
                "capacity": size, "accessModes": modes, "storageClassName": "", "hostPath": {"path": str(folder)},
                "claimRef": {"namespace": self.namespace, "name": "checkpoints"}}},
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "checkpoints"}, "spec": {
                "accessModes": modes, "storageClassName": "", "volumeName": name, "resources": {"requests": size}}}]}))
        return "checkpoints"

    def status(self):
        return self.get("tj", "digits").get("status", {})

    def pods(self):
        """The job's pods by name, without those that are going or gone."""
        items = self.get("pods", "--selector=training.ringmaster.dev/job=digits")["items"]
        return {item["metadata"]["name"]: item for item in items
                if not item["metadata"].get("deletionTimestamp") and item["status"]["phase"] in ("Pending", "Running")}

    def wait(self, condition, what):
        return wait_until(condition, what, deadline=PATIENCE, between=0.2)

    def wait_for_step(self, step):
        def reached():
            status = self.status()
            if status.get("state") in ("Succeeded", "Failed"):
                raise AssertionError(f"the job has ended before step {step}")
            return status.get("progress", {}).get("step", 0) >= step
        self.wait(reached, lambda: f"step {step}; the status is {json.dumps(self.status())}")

    def wait_for_checkpoint(self):
        """A job that has something to lose, and a place to go on from."""
        self.wait(lambda: self.status().get("checkpoints"), lambda: f"a checkpoint; the status is {json.dumps(self.status())}")

    def result(self):
        """(digest, steps) of the job when it has succeeded."""
        status = self.wait_for_end()
        message = next(item["message"] for item in status["conditions"] if item["type"] == "Succeeded")
        match = re.fullmatch(r"Trained (\d+) steps to accuracy [0-9.]+; weights sha256:([0-9a-f]{64})\.", message)
        self.assertTrue(match, message)
        return match[2], int(match[1])

    def wait_for_end(self, state="Succeeded"):
        """The status of the job once it has ended so."""
        self.wait(lambda: self.status().get("state") in ("Succeeded", "Failed"), lambda: f"the end; the status is {json.dumps(self.status())}")
        status = self.status()
        self.assertEqual(status["state"], state, json.dumps(status))
        return status

    def causes(self):
        return {name: count for name, count in self.status().get("restarts", {}).get("byCause", {}).items() if count}

    # Bad luck.

    def kill(self, pod, program, number=signal.SIGKILL):
        """Kills a program inside of a pod, as the node's kernel would."""
        uid = pod["metadata"]["uid"]
        found = [pid for pid, _, command in processes() if command and command[0].endswith(program)
                 and f"RINGMASTER_POD_UID={uid}".encode() in pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")]
        self.assertEqual(len(found), 1, f"{program} of {pod['metadata']['name']}: {found}")
        os.kill(found[0], number)


def spread_over_nodes(job):
    """Puts the job's workers on both nodes alike, as long as both take any. By itself the scheduler may fill one, where much runs on the other."""
    job["spec"]["workers"]["template"] = {"spec": {"topologySpreadConstraints": [{
        "maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule", "nodeTaintsPolicy": "Honor",
        "labelSelector": {"matchLabels": {"training.ringmaster.dev/job": job["metadata"]["name"]}}}]}}


def namespace(name=None):
    named = {"name": name} if name else {"generateName": "test-"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {**named, "labels": RESTRICTED}}
