"""Plays the kubelet for the pods of a namespace that carry BY_HAND: their containers become processes of this machine.

What the test asks for happens to them: an image that cannot be pulled, an eviction, a node that is cut off. Everything else is as a kubelet
does it: phase, addresses, container states, exit codes, the pod's own token, SIGTERM and SIGKILL on deletion, and the object goes last.
"""
import os
import pathlib
import random
import signal
import subprocess
import sys
import threading
import time
import traceback

from kube_api import Refused
from testing import BIN

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "cluster"))
import supervisor  # noqa: E402

BY_HAND = {"test.ringmaster.dev/kubelet": "by-hand"}
LOOK = 0.1  # seconds between two passes


class Kubelet:
    def __init__(self, api, namespace, folder, workspace, address=None):
        """`address(number)`: of the pod of that number, 1 and up, and of the node, 0."""
        self._api = api
        self._path = f"/api/v1/namespaces/{namespace}"
        self._folder = pathlib.Path(folder)
        self._workspace = workspace
        subnet = f"127.{random.randint(128, 254)}.{random.randint(1, 254)}"
        self._address = address or (lambda number: f"{subnet}.{number + 1}")
        self._next = 1
        self._running = {}  # pod UID: _Pod
        self._cut_off = set()  # names of pods that nothing is done for, as when their node is cut off
        self._waiting = {}  # image: (reason, message) why containers of it do not start
        self._warnings = {}  # image: (reason, message) of the event about pods that do not start
        self._warned = set()  # pod UIDs
        self._mutex = threading.Lock()
        self._stopped = threading.Event()
        self.trouble = []  # what went wrong in the kubelet itself
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self):
        self._thread.start()

    def stop(self):
        self._stopped.set()
        self._thread.join()
        for pod in self._running.values():
            pod.signal(signal.SIGKILL)
            pod.process.wait()

    # What happens to pods.

    def withhold(self, image, reason, message, warning=None):
        """Containers of the image do not start; `warning` is the (reason, message) of an event about their pods."""
        with self._mutex:
            self._waiting[image] = (reason, message)
            if warning:
                self._warnings[image] = warning

    def provide(self, image):
        with self._mutex:
            self._waiting.pop(image, None)
            self._warnings.pop(image, None)

    def cut_off(self, name):
        """The pod's node is not heard of any more; its processes go on."""
        with self._mutex:
            self._cut_off.add(name)

    def pid(self, name):
        """The process of the pod's container; its first, so the launcher."""
        with self._mutex:
            return next(pod.process.pid for pod in self._running.values() if pod.name == name)

    def kill(self, name, number=signal.SIGKILL):
        """All processes of the pod's container get the signal."""
        with self._mutex:
            next(pod for pod in self._running.values() if pod.name == name).signal(number)

    def evict(self, name, message="The node was low on resource: memory."):
        """Fails the pod as a kubelet under pressure does, and ends its processes."""
        with self._mutex:
            pod = next(pod for pod in self._running.values() if pod.name == name)
            pod.signal(signal.SIGKILL)
            pod.process.wait()
            pod.reported = True
            self._write(pod.name, {"phase": "Failed", "reason": "Evicted", "message": message,
                                   "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet",
                                                   "message": message}]})

    def run_out_of_memory(self, name):
        """Ends the pod's container as the kernel does, and says so as a kubelet does."""
        with self._mutex:
            pod = next(pod for pod in self._running.values() if pod.name == name)
            pod.out_of_memory = True
            pod.signal(signal.SIGKILL)

    def log(self, name):
        path = self._folder / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def since(self, name):
        """When the pod's container was started; None where it was not."""
        with self._mutex:
            return next((pod.since for pod in self._running.values() if pod.name == name), None)

    def ended(self, name):
        with self._mutex:
            return all(pod.process.poll() is not None for pod in self._running.values() if pod.name == name)

    # The loop.

    def _run(self):
        while not self._stopped.wait(LOOK):
            try:
                pods = self._api.get(f"{self._path}/pods")["items"]
                with self._mutex:
                    self._pass({pod["metadata"]["uid"]: pod for pod in pods if _is_ours(pod)})
            except Refused as refused:
                if refused.status not in (404, 409):  # gone, or changed meanwhile: the next pass sees it
                    self.trouble.append(str(refused))
            except Exception:  # told to the test, which fails with it
                self.trouble.append(traceback.format_exc())

    def _pass(self, pods):
        for uid, pod in self._running.items():
            if uid not in pods and pod.process.poll() is None:  # removed by force
                pod.signal(signal.SIGKILL)
        for uid, item in pods.items():
            name = item["metadata"]["name"]
            if name in self._cut_off:
                continue
            if item["metadata"].get("deletionTimestamp"):
                self._end(uid, item)
            elif uid not in self._running and item["spec"].get("nodeName") and item["status"].get("phase") == "Pending":
                self._begin(uid, item)
            elif uid in self._running:
                self._report(self._running[uid])

    def _begin(self, uid, item):
        container = item["spec"]["containers"][0]
        started = {"phase": "Pending", "hostIP": self._address(0)}
        if container.get("image") in self._waiting:
            reason, message = self._waiting[container["image"]]
            self._write(item["metadata"]["name"], {**started, "containerStatuses": [
                _container_status(container, {"waiting": {"reason": reason, "message": message}})]})
            if container["image"] in self._warnings and uid not in self._warned:
                self._warn(item, *self._warnings[container["image"]])
                self._warned.add(uid)
            return
        pod = _Pod(item, self._address(self._next), self._address(0))
        self._next += 1
        now = _now()
        self._write(pod.name, {"phase": "Running", "hostIP": pod.host_ip, "podIP": pod.ip, "podIPs": [{"ip": pod.ip}], "startTime": now,
                               "conditions": [{"type": kind, "status": "True", "lastTransitionTime": now}
                                              for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")],
                               "containerStatuses": [_container_status(container, {"running": {"startedAt": now}})]})
        pod.start(self._volumes(item), self._workspace, self._folder / f"{pod.name}.log")
        self._running[uid] = pod

    def _report(self, pod):
        code = pod.process.poll()
        if code is None or pod.reported:
            return
        pod.reported = True
        code = 128 - code if code < 0 else code
        ended = {"exitCode": code, "reason": pod.why(code), "startedAt": pod.since, "finishedAt": _now()}
        if code and pod.container.get("terminationMessagePolicy") == "FallbackToLogsOnError":
            ended["message"] = self.log(pod.name)[-2048:]
        self._write(pod.name, {"phase": "Failed" if code else "Succeeded",
                               "containerStatuses": [_container_status(pod.container, {"terminated": ended})]})

    def _end(self, uid, item):
        """The containers first, then their end is told, then the object goes."""
        pod = self._running.get(uid)
        if pod is not None and pod.process.poll() is None:
            if pod.kill_at is None:
                pod.kill_at = time.monotonic() + item["metadata"].get("deletionGracePeriodSeconds", 30)
                pod.process.terminate()
            elif time.monotonic() > pod.kill_at:
                pod.signal(signal.SIGKILL)
            return
        if pod is not None:
            self._report(pod)
        self._api.delete(f"{self._path}/pods/{item['metadata']['name']}",
                         {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}})

    def _warn(self, item, reason, message):
        metadata, now = item["metadata"], _now()
        self._api.post(f"{self._path}/events", {
            "apiVersion": "v1", "kind": "Event", "metadata": {"generateName": f"{metadata['name']}.", "namespace": metadata["namespace"]},
            "involvedObject": {"apiVersion": "v1", "kind": "Pod", **{key: metadata[key] for key in ("namespace", "name", "uid", "resourceVersion")}},
            "type": "Warning", "reason": reason, "message": message, "source": {"component": "kubelet", "host": item["spec"]["nodeName"]},
            "firstTimestamp": now, "lastTimestamp": now, "count": 1})

    def _write(self, name, status):
        self._api.patch(f"{self._path}/pods/{name}/status", {"status": status})

    def _volumes(self, item):
        """The folder that stands for each mount path of the first container."""
        folders = {}
        for mount in item["spec"]["containers"][0].get("volumeMounts", []):
            volume = next(volume for volume in item["spec"]["volumes"] if volume["name"] == mount["name"])
            if "hostPath" in volume:
                folders[mount["mountPath"]] = volume["hostPath"]["path"]
                continue
            folder = self._folder / f"{item['metadata']['name']}.volumes" / volume["name"]
            folder.mkdir(parents=True, exist_ok=True)
            folders[mount["mountPath"]] = str(folder)
            for source in volume.get("projected", {}).get("sources", []):
                if "serviceAccountToken" in source:
                    (folder / source["serviceAccountToken"]["path"]).write_text(self._token(item, source["serviceAccountToken"]))
        folders.pop("/tmp", None)  # every process has one
        return folders

    def _token(self, item, source):
        metadata = item["metadata"]
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {
            "audiences": [source["audience"]] if source.get("audience") else [], "expirationSeconds": source.get("expirationSeconds", 3600),
            "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}}}
        account = item["spec"].get("serviceAccountName", "default")
        return self._api.post(f"{self._path}/serviceaccounts/{account}/token", request)["status"]["token"]


class _Pod:
    """A pod that runs: one container, one process group."""

    def __init__(self, item, ip, host_ip):
        self.item, self.ip, self.host_ip = item, ip, host_ip
        self.name = item["metadata"]["name"]
        self.container = item["spec"]["containers"][0]
        self.since = _now()
        self.kill_at = None
        self.reported = False
        self.out_of_memory = False
        self.process = None

    def why(self, code):
        return "OOMKilled" if self.out_of_memory else "Error" if code else "Completed"

    def start(self, folders, workspace, log):
        def here(text):
            for path, folder in sorted({"/workspace": workspace, **folders}.items(), key=lambda entry: -len(entry[0])):
                if text == path or text.startswith(path + "/"):
                    return folder + text[len(path):]
            return text

        fields = {"metadata.name": self.name, "metadata.namespace": self.item["metadata"]["namespace"],
                  "metadata.uid": self.item["metadata"]["uid"], "status.podIP": self.ip, "status.hostIP": self.host_ip,
                  "spec.nodeName": self.item["spec"]["nodeName"]}
        environment = {"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": workspace, "TMPDIR": workspace}
        for variable in self.container.get("env", []):
            source = variable.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
            environment[variable["name"]] = fields[source] if source else here(variable.get("value", ""))
        command = [here(word) for word in [*self.container.get("command", ["ringmaster-launcher"]), *self.container.get("args", [])]]
        parent = os.getpid()
        with open(log, "w") as output:
            self.process = subprocess.Popen(command, cwd=workspace, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                            preexec_fn=lambda: (os.setpgid(0, 0), supervisor.die_with(parent)))

    def signal(self, number):
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass


def _is_ours(pod):
    annotations = pod["metadata"].get("annotations", {})
    return all(annotations.get(name) == value for name, value in BY_HAND.items())


def _container_status(container, state):
    return {"name": container["name"], "image": container.get("image", ""), "imageID": "", "ready": "running" in state,
            "started": "running" in state, "restartCount": 0, "state": state}


def _now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
