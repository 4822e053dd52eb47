"""A namespace with an operator, a kubelet and a user, for the stories that users of training operators rely on."""
import json
import os
import pathlib
import shutil

from cluster_test_case import LOOK, ROOT  # first: it says where modules are looked for
from kube_api import KubeApi
from kubelet import BY_HAND, Kubelet
from operator_process import OperatorTest
from testing import free_port, wait_until

JOBS = "/apis/training.ringmaster.dev/v1alpha1"
PATIENCE = 120  # seconds for any one wait
ENDLESS = 10000  # epochs: more than any machine trains in a story
LONG = 150  # epochs: seconds after word of the first steps on a fast machine, and well within PATIENCE on a slow one
FOREVER = ["sh", "-c", "trap 'exit 143' TERM; while :; do sleep 0.1; done"]


def job(spec, name="story"):
    return {"apiVersion": "training.ringmaster.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": name}, "spec": spec}


def program(command, workers=2, name="story", image="mine", **spec):
    """A job whose workers run a program of the user's own."""
    container = {"name": "worker", "image": image, "command": command,
                 "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}}
    template = {"metadata": {"annotations": BY_HAND}, "spec": {
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "terminationGracePeriodSeconds": 5, "containers": [container]}}
    return job({"launch": {"mode": "Exec"}, "workers": {"replicas": workers, "minReplicas": 1, "maxReplicas": 8, "template": template}, **spec}, name)


def digits(epochs, workers=2, name="story", **spec):
    """A job that trains the digits' network."""
    return job({
        "workers": {"replicas": workers, "minReplicas": 1, "maxReplicas": 4, "template": {"metadata": {"annotations": BY_HAND}}},
        "checkpoint": {"directory": "checkpoints", "everySteps": 10},
        "trainer": {"model": {"zoo": {"name": "lenet-bn"}}, "optimizer": {"sgd": {"learningRate": 0.05}}, "batch": {"size": 64, "shards": 4},
                    "data": {"csv": {"path": "digits.csv", "classes": 10, "shape": [1, 8, 8], "scale": 16}}, "epochs": epochs, "seed": 7},
        **spec}, name)


def is_gone(pid):
    """Whether the process has ended, also when nobody has asked for its exit code yet."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


# A machine that stands still for a while is not what most stories are about.
PATIENT = ("--lease-duration=90", "--renew-deadline=60")


class StoryTest(OperatorTest):
    operator_flags = PATIENT
    pod_address = None  # as Kubelet's `address`

    def setUp(self):
        super().setUp()
        shutil.copy(ROOT / "examples/digits/digits.csv", self.folder)
        self.api = KubeApi(os.environ["RINGMASTER_TEST_KUBECONFIG"])
        self.addCleanup(self.api.close)
        self.kubelet = Kubelet(self.api, self.namespace, self.folder, str(self.folder), self.pod_address)
        self.addCleanup(self.kubelet.stop)
        self.kubelet.start()
        self.rendezvous_port = free_port(self.address)  # of all operators of the story, as a Service's is
        self.operator = self.start_operator()

    def start_operator(self, pod="operator-0", arguments=()):
        return super().start_operator(pod, (*self.operator_flags, *arguments), self.rendezvous_port)

    def _callTestMethod(self, method):
        try:
            super()._callTestMethod(method)
            if self.kubelet.trouble:
                raise AssertionError("the kubelet of this test had trouble: " + "\n".join(self.kubelet.trouble))
        except Exception:
            print(self.picture(), flush=True)
            raise

    def picture(self):
        """What a user would look at when something is wrong."""
        parts = [self.kubectl("get", "tj,pods,services", "-o", "wide", check=False)[1],
                 self.kubectl("get", "tj", "-o", "yaml", check=False)[1],
                 self.kubectl("get", "events", "--sort-by=.metadata.creationTimestamp", check=False)[1]]
        parts += [f"--- {path.name}\n{path.read_text(errors='replace')[-4000:]}" for path in sorted(self.folder.glob("*.log"))]
        return "\n".join(parts)

    # What is there.

    def job(self, name="story"):
        return self.api.find(f"{JOBS}/namespaces/{self.namespace}/trainingjobs/{name}")

    def status(self, name="story"):
        return (self.job(name) or {}).get("status", {})

    def condition(self, kind, name="story"):
        return next((item for item in self.status(name).get("conditions", []) if item["type"] == kind), {})

    def pods(self, name="story", with_deleted=False):
        """The job's pods by name; those that are being deleted only on request."""
        items = self.api.get(f"/api/v1/namespaces/{self.namespace}/pods", labelSelector=f"training.ringmaster.dev/job={name}")["items"]
        return {item["metadata"]["name"]: item for item in items if with_deleted or not item["metadata"].get("deletionTimestamp")}

    def services(self):
        return [item["metadata"]["name"] for item in self.api.get(f"/api/v1/namespaces/{self.namespace}/services")["items"]]

    # Waiting.

    def wait(self, condition, what):
        return wait_until(condition, what, deadline=PATIENCE, between=LOOK)

    def wait_for_state(self, state, name="story"):
        self.wait(lambda: self.status(name).get("state") == state, lambda: f"{state}; it is {self.status(name).get('state')}")

    def wait_for_round(self, number, members=None, name="story"):
        """The status once it is Running in this round or a later one, with as many members."""
        def there():
            status = self.status(name)
            fits = status.get("state") == "Running" and status.get("round", 0) >= number
            return status if fits and (members is None or len(status.get("members", [])) == members) else None
        return self.wait(there, lambda: f"round {number}; the status is {json.dumps(self.status(name))}")

    def wait_for_condition(self, kind, value="True", name="story"):
        self.wait(lambda: self.condition(kind, name).get("status") == value, lambda: f"{kind}={value}; it is {self.condition(kind, name)}")
        return self.condition(kind, name)

    def wait_for_step(self, step, name="story"):
        self.wait(lambda: self.status(name).get("progress", {}).get("step", 0) >= step, f"step {step}")

    def restarts(self, name="story"):
        return self.status(name).get("restarts", {}).get("total", 0)
