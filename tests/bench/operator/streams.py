"""What workers' streams cost: real ones, with TLS and tokens that the API server reviews, held by one operator while their jobs stand."""
import concurrent.futures
import json
import subprocess
import time

from contenders import WORKERS, core, training_job, training_jobs
from world import BIN, LOOK, NAMESPACE, Operator, Wrong, cpu_seconds, memory_mb, started, wait_until

AUDIENCE = "rendezvous.ringmaster.dev"


def measure(cluster, count, seconds):
    """Of at least so many streams, all of which stand for so many seconds. Their jobs stay."""
    jobs = -(-count // WORKERS)
    with Operator(cluster) as operator:
        cluster.create(training_jobs(NAMESPACE), training_job(), jobs)
        wait_until(lambda: len(running(cluster)) == jobs * WORKERS, "the pods to run", deadline=600, between=LOOK)
        operator.wait_until_idle()
        workers = with_tokens(cluster, running(cluster))
        before = memory_mb(operator.pid)
        report = load(cluster, operator, workers, seconds)
        states = {item["status"]["state"] for item in cluster.list(training_jobs(NAMESPACE))}
        if states != {"Running"}:
            raise Wrong(f"with all workers joined the jobs are {states}")
    return {**report, "streams": len(workers), "kbEach": 1024 * (report["mb"] - before) / len(workers)}


def running(cluster):
    return [pod for pod in cluster.list(core(NAMESPACE)) if pod["status"]["phase"] == "Running"]


def with_tokens(cluster, pods):
    def one(pod):
        meta = pod["metadata"]
        answer = cluster.api.post(f"{core(NAMESPACE, 'serviceaccounts')}/{pod['spec']['serviceAccountName']}/token", {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {"audiences": [AUDIENCE], "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}}})
        return {"namespace": meta["namespace"], "job": meta["labels"]["training.ringmaster.dev/job"], "pod": meta["name"], "uid": meta["uid"],
                "token": answer["status"]["token"]}
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        return list(threads.map(one, pods))


def authority(pods):
    """The certificate that the workers' launchers are told to trust."""
    variables = {item["name"]: item.get("value", "") for item in pods[0]["spec"]["containers"][0]["env"]}
    return variables["RINGMASTER_RENDEZVOUS_CA"]


def load(cluster, operator, workers, seconds):
    path = cluster.folder / "workers.json"
    path.write_text(json.dumps({"address": f"127.0.0.1:{operator.port}", "ca": authority(running(cluster)), "workers": workers}))
    log = cluster.folder / "streams.log"
    with started([BIN.parent / "tests/rendezvous_load", path, str(seconds)], log, stdout=subprocess.PIPE, text=True) as process:
        if process.stdout.readline() != "all there\n":
            raise Wrong(f"not all workers joined: {process.stdout.read()}{log.read_text()}")
        start, used = time.monotonic(), cpu_seconds(operator.pid)
        time.sleep(seconds - 1)  # what is measured is this very time
        share = (cpu_seconds(operator.pid) - used) / (time.monotonic() - start)
        mb = memory_mb(operator.pid)
        report = json.loads(process.stdout.read())
    if report["ended"] or report["inRound"] != len(workers):
        raise Wrong(f"streams broke: {report}")
    return {**report, "cpu": share, "mb": mb}
