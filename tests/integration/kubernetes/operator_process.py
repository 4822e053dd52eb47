"""The operator as its own process against the test cluster, under a service account that may do what charts/ says and nothing else."""
import base64
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import urllib.request

from cluster_test_case import LOOK, ROOT, ClusterTest, kubectl, require_controllers, wait_until
from testing import BIN, free_port

RBAC = ROOT / "charts/ringmaster/files/rbac.json"
NAME = "ringmaster-operator"  # of the lease, the default
# The default: a shorter one is lost where a busy machine stands still for a moment.
LEASE_SECONDS = int(os.environ.get("RINGMASTER_TEST_LEASE_SECONDS", "15"))
LEASE = (f"--lease-duration={LEASE_SECONDS}", f"--renew-deadline={LEASE_SECONDS * 2 / 3:.1f}", f"--retry-period={LEASE_SECONDS * 2 / 15:.1f}")


class Operator:
    """One replica. It is killed when it goes."""

    def __init__(self, pod, namespace, kubeconfig, folder, arguments=(), rendezvous_port=0, address="127.0.0.1", environment=None):
        host = f"[{address}]" if ":" in address else address
        self.pod, self._metrics = pod, f"{host}:{free_port(address)}"
        self.log = folder / f"{pod}.log"
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [BIN / "ringmaster-operator", "--cluster", f"--kubeconfig={kubeconfig}", f"--namespace={namespace}",
                 f"--lease-namespace={namespace}", f"--rendezvous-address={host}:{rendezvous_port}", f"--host={address}",
                 f"--metrics-address={self._metrics}",
                 "--worker-image=worker:1", *arguments],
                env={**os.environ, "RINGMASTER_POD_NAME": pod, **(environment or {})}, stderr=log)

    def get(self, path):
        """What it answers there, and None while it does not answer with 200."""
        try:
            with urllib.request.urlopen(f"http://{self._metrics}{path}", timeout=10) as answer:
                return answer.read().decode()
        except OSError:
            return None

    def leads(self):
        return "\nringmaster_operator_leading 1" in (self.get("/metrics") or "") and self.get("/readyz") is not None

    def wait_until_ready(self):
        wait_until(lambda: self.get("/readyz") or self._fail_if_ended(), f"{self.pod} to be ready", between=LOOK)

    def wait_until_it_leads(self):
        wait_until(lambda: self.leads() or self._fail_if_ended(), f"{self.pod} to lead", between=LOOK)

    def _fail_if_ended(self):
        if self.process.poll() is not None:
            raise AssertionError(f"{self.pod} ended with {self.process.returncode}:\n{self.log.read_text(encoding='utf-8')}")

    def end(self, number=signal.SIGTERM):
        """Its exit code after this signal."""
        self.process.send_signal(number)
        return self.process.wait(timeout=60)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(timeout=60)


class OperatorTest(ClusterTest):
    """A namespace whose pods must keep the restricted Pod Security Standard, and an account for operators."""
    address = "127.0.0.1"  # of operators

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        require_controllers()  # pods need an account, a node and somebody who collects them

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix="ringmaster-operator-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        kubectl("label", "namespace", self.namespace, "pod-security.kubernetes.io/enforce=restricted")
        self.kubectl("create", "serviceaccount", "operator")
        self.grant()
        self.kubeconfig = self.write_kubeconfig("operator")

    def rights(self):
        """What the chart grants, by part."""
        return json.loads(RBAC.read_text(encoding="utf-8").replace("NAME", NAME))

    def grant(self):
        rights = self.rights()
        watched = rights["watched"] + sum(rights["gang"].values(), [])
        for kind, name, rules in (("Role", "watched", watched), ("Role", "own", rights["own"]),
                                  ("ClusterRole", f"{self.namespace}-cluster", rights["cluster"])):
            role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "rules": rules}
            binding = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": f"{kind}Binding", "metadata": {"name": name},
                       "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
                       "subjects": [{"kind": "ServiceAccount", "name": "operator", "namespace": self.namespace}]}
            for item in (role, binding):
                self.apply(item)
                if kind == "ClusterRole":
                    self.addCleanup(kubectl, "delete", item["kind"], name, "--wait=false")

    def write_kubeconfig(self, account):
        """A kubeconfig for the service account, which knows nothing of the administrator's."""
        admin = json.loads(kubectl("config", "view", "--raw", "--flatten", "--minify", "-o", "json"))
        token = self.kubectl("create", "token", account, "--duration=2h").strip()
        made = {"apiVersion": "v1", "kind": "Config", "current-context": "test", "clusters": admin["clusters"],
                "users": [{"name": account, "user": {"token": token}}],
                "contexts": [{"name": "test", "context": {"cluster": admin["clusters"][0]["name"], "user": account,
                                                          "namespace": self.namespace}}]}
        path = self.folder / f"{account}.kubeconfig"
        path.write_text(json.dumps(made), encoding="utf-8")
        return path

    def start_operator(self, pod="operator-0", arguments=(), rendezvous_port=0, environment=None):
        operator = Operator(pod, self.namespace, self.kubeconfig, self.folder, arguments, rendezvous_port, self.address, environment)
        self.addCleanup(operator.kill)
        return operator

    def pods(self):
        """The job's pods that are not going, by name."""
        items = json.loads(self.kubectl("get", "pods", "-l", "training.ringmaster.dev/job", "-o", "json"))["items"]
        return {item["metadata"]["name"]: item for item in items if "deletionTimestamp" not in item["metadata"]}

    def wait_for_pods(self, *names):
        def look():
            pods = self.pods()
            return [pods] if sorted(pods) == sorted(names) else None
        return wait_until(look, lambda: f"pods {names}; there are {list(self.pods())}", between=LOOK)[0]

    def rendezvous_secret(self):
        data = self.get("secret", f"{NAME}-rendezvous")["data"]
        return {key: base64.b64decode(value) for key, value in data.items()}
