"""What the benchmark runs on: test clusters, the contenders' processes, and what the kernel says of them."""
import collections
import contextlib
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[3]
for _folder in ("tests/support", "tests/cluster", "tests/integration/kubernetes"):
    sys.path.insert(0, str(ROOT / _folder))
import binaries  # noqa: E402
import control_plane  # noqa: E402
import supervisor  # noqa: E402
from kube_api import KubeApi, Refused  # noqa: E402,F401
from testing import BIN, free_port, wait_until  # noqa: E402

CRD = ROOT / "crds/training.ringmaster.dev_trainingjobs.yaml"
JOBS = "/apis/training.ringmaster.dev/v1alpha1"
NAMESPACE = "bench"
PODS_PER_NODE = 900  # a node of tests/cluster takes 1,000
LOOK = 0.2  # seconds between two looks at something
TICKS = os.sysconf("SC_CLK_TCK")


class Wrong(Exception):
    """A result that is not what it should be: what was measured then means nothing."""


def say(text):
    print(time.strftime("%H:%M:%S", time.gmtime()), text, file=sys.stderr, flush=True)


def cpu_seconds(pid):
    """User and system time of a process so far."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory_mb(pid, what="VmRSS"):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(what + ":"):
            return int(line.split()[1]) / 1024
    raise Wrong(f"process {pid} has no {what}")


@contextlib.contextmanager
def started(command, log, **options):
    """A process that is killed at the end, if it still runs."""
    with open(log, "w", encoding="utf-8") as errors:
        process = subprocess.Popen(command, stderr=errors, preexec_fn=lambda parent=os.getpid(): supervisor.die_with(parent), **options)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


class Cluster:
    """A control plane. Its scheduler and kwok run where it is to take pods, the scheduler without its limit of calls."""

    def __init__(self, pods=0, crds=(CRD,)):
        self._temporary = tempfile.TemporaryDirectory(prefix="ringmaster-bench-")
        self.folder = pathlib.Path(self._temporary.name).resolve()
        self.nodes = -(-pods // PODS_PER_NODE) + 1 if pods else 0
        options = control_plane.Options(nodes=self.nodes, scheduler=("--kube-api-qps=5000", "--kube-api-burst=5000"))
        self.kubeconfig = supervisor.start(self.folder, options, owner=os.getpid())
        self._namespaces = 0
        self.api = KubeApi(str(self.kubeconfig))
        self.make_namespace(NAMESPACE)
        for crd in crds:
            self._install(crd)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.api.close()
        supervisor.stop(self.folder)
        self._temporary.cleanup()

    def new_namespace(self):
        self._namespaces += 1
        self.make_namespace(f"{NAMESPACE}-{self._namespaces}")
        return f"{NAMESPACE}-{self._namespaces}"

    def make_namespace(self, name):
        self.api.post("/api/v1/namespaces", {"metadata": {"name": name}})
        wait_until(lambda: self.api.find(f"/api/v1/namespaces/{name}/serviceaccounts/default"), "the namespace's account", between=LOOK)

    def _install(self, crd):
        done = subprocess.run([binaries.find("kubectl"), f"--kubeconfig={self.kubeconfig}", "apply", "--server-side", "-o", "name", "-f",
                               str(crd)], check=True, stdout=subprocess.PIPE, text=True, timeout=120)
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + done.stdout.strip().rpartition("/")[2]

        def established():
            conditions = self.api.get(path).get("status", {}).get("conditions") or []
            return any(item["type"] == "Established" and item["status"] == "True" for item in conditions)
        wait_until(established, f"{crd} to be served", between=LOOK)

    def wait_until_collected(self, kinds):
        """Until the garbage collector watches these kinds, as it does on any cluster that has had them for half a minute. Until then it
        asks for each owner of each pod by itself."""
        def watched():
            series = [line for line in self._metrics().splitlines() if line.startswith("apiserver_longrunning_requests{")]
            return all(any(f'resource="{kind}"' in line and 'verb="WATCH"' in line for line in series) for kind in kinds)
        wait_until(watched, f"the garbage collector to watch {kinds}", between=LOOK)

    def create(self, path, item, count, parallel=16, status=False, owners=None):
        """Makes `count` objects with the plain parallel client; the item's text has NUMBER where they differ."""
        template = self.folder / "template.json"
        template.write_text(json.dumps(item), encoding="utf-8")
        done = subprocess.run([binaries.find("load"), "create", f"--kubeconfig={self.kubeconfig}", f"--path={path}", f"--template={template}",
                               f"--count={count}", f"--parallel={parallel}", *(["--status"] if status else []),
                               *([f"--owners={owners}"] if owners else [])],
                              stdout=subprocess.PIPE, text=True, timeout=900)
        if done.returncode != 0:
            raise Wrong(f"{count} objects could not be made at {path}")
        return json.loads(done.stdout)

    def create_owned(self, path, item, owners):
        """As create, one for each owner, whose names end in their numbers from 0; OWNER in the item becomes the UID."""
        uids = self.folder / "owners.json"
        uids.write_text(json.dumps([owners[name] for name in sorted(owners, key=lambda name: int(name.rpartition("-")[2]))]))
        return self.create(path, item, len(owners), status=True, owners=uids)

    def list(self, path):
        items, token = [], ""
        while True:
            page = self.api.get(path, limit=500, **({"continue": token} if token else {}))
            items += page["items"]
            token = page["metadata"].get("continue", "")
            if not token:
                return items

    @contextlib.contextmanager
    def watching(self, pods, namespace, timeout=900):
        """Counts the namespace's pods from outside; gives a function that waits until all run and returns the times."""
        command = [binaries.find("load"), "watch", f"--kubeconfig={self.kubeconfig}", f"--path=/api/v1/namespaces/{namespace}/pods",
                   f"--count={pods}", f"--timeout={timeout}s"]
        log = self.folder / "watch.log"
        with started(command, log, stdout=subprocess.PIPE, text=True) as process:
            if process.stdout.readline() != "ready\n":
                raise Wrong(f"the watch did not start: {log.read_text()}")

            def result():
                text = process.stdout.read()
                if process.wait() != 0:
                    raise Wrong(log.read_text().strip())
                return json.loads(text)
            yield result

    def calls(self):
        """How many calls the API server has answered so far, by (method, resource/subresource, code)."""
        counts = collections.Counter()
        for line in self._metrics().splitlines():
            if line.startswith("apiserver_request_total{"):
                label = dict(re.findall(r'(\w+)="([^"]*)"', line))
                kind = "/".join(part for part in (label["resource"], label["subresource"]) if part)
                counts[label["verb"], kind, label["code"]] += int(float(line.rpartition(" ")[2]))
        return counts

    def _metrics(self):
        return subprocess.run([binaries.find("kubectl"), f"--kubeconfig={self.kubeconfig}", "get", "--raw=/metrics"], check=True,
                              capture_output=True, text=True, timeout=120).stdout

    def cpu(self):
        """CPU seconds so far of each of its programs."""
        keeper = (self.folder / "pid").read_text()
        used = {}
        for child in pathlib.Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split():
            name = pathlib.Path(pathlib.Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")[0].decode()).name
            used[name] = cpu_seconds(child)
        return used


class Operator:
    """ringmaster-operator with its default limits, beside the cluster."""

    def __init__(self, cluster, arguments=()):
        self._metrics, self.port = free_port(), free_port()
        command = [BIN / "ringmaster-operator", "--cluster", f"--kubeconfig={cluster.kubeconfig}", f"--lease-namespace={NAMESPACE}", f"--lease-name=operator-{self.port}",
                   f"--rendezvous-address=127.0.0.1:{self.port}", "--host=127.0.0.1", f"--metrics-address=127.0.0.1:{self._metrics}", *arguments]
        self.log = cluster.folder / "operator.log"
        self._running = started(command, self.log, env={**os.environ, "RINGMASTER_POD_NAME": "operator-0"})

    def __enter__(self):
        self._process = self._running.__enter__()
        self.pid = self._process.pid
        return self

    def __exit__(self, *what):
        return self._running.__exit__(*what)

    def metrics(self):
        """Every series' value by its name with labels."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._metrics}/metrics", timeout=60) as answer:
            lines = answer.read().decode().splitlines()
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if not line.startswith("#"))}

    def wait_until_it_leads(self):
        def leads():
            if self._process.poll() is not None:
                raise Wrong(f"the operator ended:\n{self.log.read_text()}")
            with contextlib.suppress(OSError):
                return self.metrics().get("ringmaster_operator_leading") == 1
        wait_until(leads, "the operator to lead", between=LOOK)

    def wait_until_idle(self):
        """Until no pass has run for some seconds."""
        last = [None, time.monotonic()]

        def quiet():
            metrics = self.metrics()
            passes = sum(value for name, value in metrics.items() if name.startswith("ringmaster_operator_reconcile_total"))
            if passes != last[0]:
                last[:] = [passes, time.monotonic()]
            return passes > 0 and metrics["ringmaster_operator_queue_depth"] == 0 and time.monotonic() - last[1] > 3
        wait_until(quiet, "the operator to come to rest", between=LOOK)

    def cpu_share(self, seconds):
        """Its part of one core over so many seconds from now."""
        before, start = cpu_seconds(self.pid), time.monotonic()
        time.sleep(seconds)  # what is measured is this very time
        return (cpu_seconds(self.pid) - before) / (time.monotonic() - start)

    def stop(self):
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(timeout=60)


def quantile(metrics, name, share, labels=""):
    """The bucket bound, in seconds, below which this share of a histogram's observations lies, and how many there are."""
    buckets = []
    for series, count in metrics.items():
        if series.startswith(name + "_bucket{") and labels in series:
            bound = series.split('le="')[1].split('"')[0]
            buckets.append((float("inf") if bound == "+Inf" else float(bound), count))
    buckets.sort()
    total = buckets[-1][1] if buckets else 0
    if not total:
        raise Wrong(f"{name}{{{labels}}} has no observations")
    return next(bound for bound, count in buckets if count >= share * total), int(total)


def median(values):
    return statistics.median(values)
