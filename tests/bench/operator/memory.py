"""What finished jobs cost: many jobs of one worker, over, in the operator's caches."""
import time

from contenders import core, empty, training_job, training_jobs
from world import LOOK, NAMESPACE, Operator, Wrong, memory_mb, say, wait_until

BEGAN, ENDED = "2026-01-01T00:00:00Z", "2026-01-01T00:10:00Z"
SERVERS_OWN = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "ownerReferences")


def measure(cluster, count, seconds):
    """With so many finished jobs and no other; its part of a core is that of so many seconds."""
    job, pod = finished(cluster)
    with Operator(cluster) as operator:
        operator.wait_until_it_leads()
        without = memory_mb(operator.pid)
    say(f"making {count} finished jobs")
    cluster.create(training_jobs(NAMESPACE), job, count, status=True)
    owners = {item["metadata"]["name"]: item["metadata"]["uid"] for item in cluster.list(training_jobs(NAMESPACE))}
    cluster.create_owned(core(NAMESPACE), pod, owners)
    with Operator(cluster) as operator:
        start = time.monotonic()
        operator.wait_until_it_leads()
        operator.wait_until_idle()
        say(f"the operator rests after {time.monotonic() - start:.0f} s")
        metrics = operator.metrics()
        if metrics['ringmaster_operator_jobs{state="Succeeded"}'] != count:
            raise Wrong("the operator does not know all of the jobs as succeeded")
        return {"jobs": count, "emptyMb": without, "mb": memory_mb(operator.pid), "peakMb": memory_mb(operator.pid, "VmHWM"),
                "idle": operator.cpu_share(seconds)}


def finished(cluster):
    """A job of one worker that is over, as the operator leaves it, and its pod, as templates of more."""
    jobs, pods = training_jobs(NAMESPACE), core(NAMESPACE)
    made = training_job("done-0", 1)
    if cluster.nodes:  # it and its like are not to run there
        made["spec"]["workers"]["template"] = {"spec": {"schedulerName": "nobody"}}
    cluster.api.post(jobs, made)
    with Operator(cluster):
        pod = wait_until(lambda: cluster.api.get(pods)["items"], "the pod", between=LOOK)[0]
    name = pod["metadata"]["name"]
    container = {"name": pod["spec"]["containers"][0]["name"], "image": "worker", "imageID": "", "ready": False, "restartCount": 0,
                 "state": {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": BEGAN, "finishedAt": ENDED}}}
    cluster.api.patch(f"{pods}/{name}/status", {"status": {"phase": "Succeeded", "containerStatuses": [container]}})
    cluster.api.patch(f"{jobs}/done-0/status", {"status": success(name, pod["metadata"]["uid"])})
    with Operator(cluster) as operator:  # which adds what is derived
        operator.wait_until_it_leads()
        operator.wait_until_idle()
    job, pod = cluster.api.get(f"{jobs}/done-0"), cluster.api.get(f"{pods}/{name}")
    if job["status"]["state"] != "Succeeded":
        raise Wrong(f"the finished job's status is {job['status']}")
    empty(cluster, NAMESPACE)
    owner = pod["metadata"]["ownerReferences"][0]
    for item in (job, pod):
        for field in SERVERS_OWN:
            item["metadata"].pop(field, None)
    job["metadata"]["name"], pod["metadata"]["name"] = "done-NUMBER", "done-NUMBER-0-0"
    pod["metadata"]["labels"]["training.ringmaster.dev/job"] = "done-NUMBER"
    job["status"]["selector"] = "training.ringmaster.dev/job=done-NUMBER"
    job["status"]["members"][0]["pod"] = pod["metadata"]["name"]
    pod["metadata"]["ownerReferences"] = [{**owner, "name": "done-NUMBER", "uid": "OWNER"}]
    return job, pod


def success(pod, uid):
    """What training wrote into the status of a job that has succeeded."""
    digest = "5f1c" * 16

    def condition(kind, status, reason, message):
        return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": ENDED, "observedGeneration": 1}
    return {
        "round": 1, "shards": 8, "startTime": BEGAN, "completionTime": ENDED, "kernelsDigest": digest, "goodput": 1,
        "members": [{"rank": 0, "pod": pod, "podUID": uid, "address": "10.0.0.1:7473"}],
        "workers": {"desired": 1, "active": 0, "ready": 0, "failed": 0, "succeeded": 1, "summary": "0/1"},
        "checkpoints": [{"step": step, "round": 1, "digest": digest, "worldSize": 1, "time": ENDED} for step in (448, 400, 350)],
        "progress": {"step": 448, "totalSteps": 448, "epoch": 20, "loss": 0.081, "accuracy": 0.978, "samplesPerSecond": 9410,
                     "lastCheckpointStep": 448, "summary": "448/448", "updatedAt": ENDED},
        "result": {"weightsSha256": digest, "steps": 448, "accuracy": 0.978, "loss": 0.081},
        "conditions": [condition("PodsReady", "False", "Completed", "The job has ended."),
                       condition("Training", "False", "Completed", "The job has ended."),
                       condition("Succeeded", "True", "Completed", "448 steps, accuracy 97.8 %.")]}
