"""Plays a user with kubectl against the test cluster (tests/cluster), in a namespace of the test's own."""
import copy
import json
import os
import pathlib
import subprocess
import sys
import unittest

for _folder in ("support", "cluster"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / _folder))
import binaries  # noqa: E402
from testing import DEADLINE, ROOT, main, wait_until  # noqa: E402,F401

CRD = ROOT / "crds/training.ringmaster.dev_trainingjobs.yaml"
LOOK = 0.05  # seconds between two looks at the cluster

# A job that passes; tests change it.
JOB = {
    "apiVersion": "training.ringmaster.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "digits"},
    "spec": {"workers": {"replicas": 2, "minReplicas": 1, "maxReplicas": 4},
             "trainer": {"model": {"zoo": {"name": "lenet-bn"}},
                         "data": {"csv": {"path": "digits.csv", "classes": 10, "shape": [1, 8, 8]}},
                         "optimizer": {"sgd": {"learningRate": 0.05}}, "batch": {"size": 64}, "epochs": 1}}}


def job(changes=None):
    """A copy of JOB with `changes`, a dictionary of path ("spec.workers.replicas") and value; None removes."""
    made = copy.deepcopy(JOB)
    for path, value in (changes or {}).items():
        *parents, last = path.split(".")
        place = made
        for name in parents:
            place = place.setdefault(name, {})
        if value is None:
            del place[last]
        else:
            place[last] = value
    return made


def kubectl(*arguments, stdin=None, check=True):
    """What kubectl printed, and where `check` is off (exit code, output and errors)."""
    kubeconfig = os.environ.get("RINGMASTER_TEST_KUBECONFIG")
    if not kubeconfig:
        raise unittest.SkipTest("RINGMASTER_TEST_KUBECONFIG is not set; ctest sets it, or tests/cluster/up tells its value")
    done = subprocess.run([binaries.find("kubectl"), f"--kubeconfig={kubeconfig}", *arguments], input=stdin, capture_output=True, text=True,
                          timeout=DEADLINE)
    if not check:
        return done.returncode, done.stdout + done.stderr
    if done.returncode != 0:
        raise AssertionError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def require_controllers():
    """Leaves the test out on a cluster of our own that is the API server alone, as programs of KUBEBUILDER_ASSETS may give."""
    absent = binaries.missing(("kube-controller-manager", "kube-scheduler", "kwok"))
    ours = pathlib.Path(os.environ["RINGMASTER_TEST_KUBECONFIG"]).with_name("etcd").is_dir()
    if absent and ours:
        raise unittest.SkipTest(f"the test cluster has no {', '.join(absent)}; {binaries.HOW}")


def wait_until_established(*definition):
    """Not by `kubectl wait`, which fails where the API server has not written a condition yet."""
    def established():
        status = json.loads(kubectl("get", *definition, "-o", "json")).get("status", {})
        return any(item["type"] == "Established" and item["status"] == "True" for item in status.get("conditions") or ())
    wait_until(established, f"{definition[-1]} to be established", deadline=60)


class ClusterTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        kubectl("apply", "--server-side", "--force-conflicts", "-f", str(CRD))
        wait_until_established("-f", str(CRD))

    def setUp(self):
        made = kubectl("create", "-o", "json", "-f", "-",
                       stdin=json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "test-"}}))
        self.namespace = json.loads(made)["metadata"]["name"]
        self.addCleanup(kubectl, "delete", "namespace", self.namespace, "--wait=false")

    def kubectl(self, *arguments, **options):
        return kubectl("--namespace", self.namespace, *arguments, **options)

    def apply(self, item, *arguments, **options):
        return self.kubectl("apply", "-f", "-", *arguments, stdin=json.dumps(item), **options)

    def refusal(self, item, *arguments):
        """What the API server says against the object; fails where it takes it."""
        code, text = self.apply(item, *arguments, check=False)
        self.assertNotEqual(code, 0, f"accepted: {json.dumps(item)}")
        return text

    def get(self, kind, name):
        return json.loads(self.kubectl("get", kind, name, "-o", "json"))

    def patch_status(self, kind, name, status):
        self.kubectl("patch", kind, name, "--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))
