"""Who makes pods: the plain parallel client, Ringmaster's operator, Kubeflow's training-operator.

They run in turn in one cluster, each in a namespace of its own whose content is deleted before the next. Everything that they start from
lies there already, jobs included, so that what is measured is their own pace: from the first pod to the last, as one and the same watch from
outside sees them.
"""
import contextlib
import copy
import functools
import re
import subprocess

from world import BIN, CRD, JOBS, LOOK, NAMESPACE, ROOT, Cluster, Operator, Refused, Wrong, binaries, cpu_seconds, started, wait_until

WORKERS = 8
PEER = ROOT / "tests/bench/operator/peer"


def core(namespace, kind="pods"):
    return f"/api/v1/namespaces/{namespace}/{kind}"


def training_jobs(namespace):
    return f"{JOBS}/namespaces/{namespace}/trainingjobs"


def pytorch_jobs(namespace):
    return f"/apis/kubeflow.org/v1/namespaces/{namespace}/pytorchjobs"


def training_job(name="job-NUMBER", workers=WORKERS):
    return {"apiVersion": "training.ringmaster.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": name}, "spec": {
        "workers": {"replicas": workers},
        "trainer": {"model": {"zoo": {"name": "lenet-bn"}}, "optimizer": {"sgd": {"learningRate": 0.05}}, "batch": {"size": 64, "shards": 8},
                    "data": {"csv": {"path": "digits.csv", "classes": 10, "shape": [1, 8, 8], "scale": 16}}, "epochs": 20, "seed": 7}}}


def peer_crd():
    """The CRD of the training-operator, from its Go module."""
    done = subprocess.run([binaries.find_go(), "list", "-m", "-f", "{{.Dir}}", "github.com/kubeflow/training-operator"], cwd=PEER, check=True,
                          capture_output=True, text=True, timeout=120)
    return f"{done.stdout.strip()}/manifests/base/crds/kubeflow.org_pytorchjobs.yaml"


@functools.cache
def in_flight():
    """Calls of the plain client at once: as many as the operator makes, which by default creates the pods of so many jobs side by side."""
    said = subprocess.run([BIN / "ringmaster-operator", "--help"], check=True, capture_output=True, text=True, timeout=60).stdout
    return WORKERS * int(re.search(r"--concurrent-jobs \S+ in \[.*?\]=(\d+)", said)[1])


def in_turns(contenders, rounds):
    """All of them, so many times over; each round begins with the next, so that none is always the first on a fresh cluster."""
    for number in range(rounds):
        first = number % len(contenders)
        yield from contenders[first:] + contenders[:first]


def pod_of_ours(cluster):
    """What the operator makes for one worker, as somebody without an operator would post it."""
    cluster.api.post(training_jobs(NAMESPACE), training_job("job-0", 1))
    with Operator(cluster):
        pod = wait_until(lambda: cluster.api.get(core(NAMESPACE))["items"], "the first pod", between=LOOK)[0]
    empty(cluster, NAMESPACE)
    meta, spec = pod["metadata"], pod["spec"]
    spec.pop("nodeName", None)
    return {"apiVersion": "v1", "kind": "Pod", "spec": spec,
            "metadata": {"name": "plain-NUMBER", "labels": meta.get("labels", {}), "annotations": meta.get("annotations", {})}}


class Plain:
    """The same pods without an owner, posted by a parallel client that does nothing else."""
    name = "plain client"

    def __init__(self, pod):
        self._pod = pod

    @contextlib.contextmanager
    def ready(self, cluster, namespace, jobs):
        yield lambda: cluster.create(core(namespace), self._pod, jobs * WORKERS, parallel=in_flight()) and None

    def check(self, cluster, namespace, jobs):
        pass  # the watch has counted


class Ringmaster:
    name = "Ringmaster"

    def __init__(self, after=lambda cluster, operator: None):
        self._after = after  # called with the operator that still runs

    @contextlib.contextmanager
    def ready(self, cluster, namespace, jobs):
        cluster.create(training_jobs(namespace), training_job(), jobs)
        operator = Operator(cluster)
        with contextlib.ExitStack() as stack:
            yield lambda: stack.enter_context(operator).pid
            self._after(cluster, operator)

    def check(self, cluster, namespace, jobs):
        """Each job has eight pods of its own, and knows it."""
        owners = {}
        for pod in cluster.list(core(namespace)):
            owners.setdefault(pod["metadata"]["ownerReferences"][0]["uid"], set()).add(pod["metadata"]["labels"]["training.ringmaster.dev/index"])

        def unaware():
            items = cluster.list(training_jobs(namespace))
            if len(items) != jobs or any(len(owners.get(item["metadata"]["uid"], ())) != WORKERS for item in items):
                raise Wrong("a job has not its eight pods")
            return [item for item in items if item.get("status", {}).get("workers", {}).get("active") != WORKERS]
        wait_until(lambda: not unaware(), lambda: f"{len(unaware())} jobs to know of their pods", deadline=90, between=1)


class TrainingOperator:
    """Kubeflow's training-operator v1.8.1, with jobs whose pods are as ours."""

    def __init__(self, pod, name, *flags):
        self.name, self._flags = name, flags
        spec = copy.deepcopy(pod["spec"])
        spec = {key: spec[key] for key in ("containers", "volumes", "securityContext", "terminationGracePeriodSeconds") if key in spec}
        spec["containers"][0]["name"] = "pytorch"
        replicas = {kind: {"replicas": count, "restartPolicy": "Never", "template": {"spec": spec}} for kind, count in
                    (("Master", 1), ("Worker", WORKERS - 1))}
        self._job = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "job-NUMBER"},
                     "spec": {"pytorchReplicaSpecs": replicas}}

    @contextlib.contextmanager
    def ready(self, cluster, namespace, jobs):
        cluster.create(pytorch_jobs(namespace), self._job, jobs)
        with contextlib.ExitStack() as stack:
            yield lambda: stack.enter_context(started([binaries.find("peer"), f"--kubeconfig={cluster.kubeconfig}", *self._flags],
                                                      cluster.folder / "peer.log")).pid

    def check(self, cluster, namespace, jobs):
        pass


def empty(cluster, namespace):
    """Deletes what the contenders have made and waits until it is gone."""
    gone = [path for path in (training_jobs(namespace), pytorch_jobs(namespace), core(namespace)) if cluster.api.find(path)]
    for path in gone:
        cluster.api.delete(path, {"gracePeriodSeconds": 0})
    for service in cluster.list(core(namespace, "services")):
        try:
            cluster.api.delete(f"{core(namespace, 'services')}/{service['metadata']['name']}")
        except Refused as refused:
            if refused.status != 404:  # the garbage collector was first
                raise
    wait_until(lambda: not any(cluster.api.get(path, limit=1)["items"] for path in gone), f"the end of all in {namespace}", deadline=600,
               between=LOOK)


def race(cluster, contender, jobs, timeout=900, clean=True):
    """The rates of one contender, and the CPU seconds and calls that a thousand pods of its took."""
    pods = jobs * WORKERS
    namespace = cluster.new_namespace()
    with contender.ready(cluster, namespace, jobs) as go, cluster.watching(pods, namespace, timeout=timeout) as result:
        calls, before = cluster.calls(), cluster.cpu()
        pid = go()
        times = result()
        used = {name: seconds - before[name] for name, seconds in cluster.cpu().items()}
        if pid:
            used["contender"] = cpu_seconds(pid)
        calls = cluster.calls() - calls
        contender.check(cluster, namespace, jobs)
    if clean:
        empty(cluster, namespace)
    return {"contender": contender.name, "jobs": jobs, "created": pods / times["createdSeconds"], "running": pods / times["runningSeconds"],
            "cpu": {name: round(1000 * seconds / pods, 2) for name, seconds in used.items()},
            "calls": {" ".join(call): round(count / pods, 2) for call, count in calls.most_common() if count >= 0.05 * pods}}


def course(pods, warm=200):
    """A cluster with room for so many pods, in which everything has been seen once."""
    cluster = Cluster(pods + warm, crds=(CRD, peer_crd()))
    warm_up(cluster, warm, ("trainingjobs", "pytorchjobs"))
    return cluster


def warm_up(cluster, pods, kinds):
    """Has the cluster run so many pods, and waits until it knows these kinds as owners."""
    namespace = cluster.new_namespace()
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "warm-NUMBER"}, "spec": {"containers": [{"name": "warm", "image": "warm"}]}}
    with cluster.watching(pods, namespace) as result:
        cluster.create(core(namespace), pod, pods)
        result()
    cluster.wait_until_collected(kinds)
    empty(cluster, namespace)
