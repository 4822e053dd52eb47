"""The API server of the test cluster as its administrator, many small calls cheaply: one `kubectl proxy` carries them."""
import http.client
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "cluster"))
import binaries  # noqa: E402
import supervisor  # noqa: E402

MERGE = "application/merge-patch+json"


class Refused(Exception):
    def __init__(self, status, message):
        super().__init__(f"{status}: {message}")
        self.status = status


class KubeApi:
    def __init__(self, kubeconfig):
        self._folder = tempfile.TemporaryDirectory(prefix="ringmaster-proxy-")
        self._socket = os.path.join(self._folder.name, "proxy")
        parent = os.getpid()
        self._proxy = subprocess.Popen(
            [binaries.find("kubectl"), f"--kubeconfig={kubeconfig}", "proxy", f"--unix-socket={self._socket}"],
            stdout=subprocess.PIPE, text=True, preexec_fn=lambda: supervisor.die_with(parent))
        self._proxy.stdout.readline()  # "Starting to serve on …": it listens

    def close(self):
        self._proxy.kill()
        self._proxy.wait()
        self._proxy.stdout.close()
        self._folder.cleanup()

    def get(self, path, **query):
        return self._ask("GET", path, query)

    def find(self, path):
        """The object, or None where there is none."""
        try:
            return self.get(path)
        except Refused as refused:
            if refused.status != 404:
                raise
            return None

    def post(self, path, item):
        return self._ask("POST", path, {}, item)

    def patch(self, path, change):
        return self._ask("PATCH", path, {}, change, MERGE)

    def delete(self, path, options=None):
        return self._ask("DELETE", path, {}, options)

    def evict(self, namespace, pod):
        """As `kubectl drain` asks for it: None, or what the API server refuses it with."""
        try:
            self.post(f"/api/v1/namespaces/{namespace}/pods/{pod}/eviction",
                      {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": namespace}})
        except Refused as refused:
            return refused
        return None

    def _ask(self, method, path, query, body=None, content="application/json"):
        connection = _UnixConnection(self._socket)
        try:
            connection.request(method, path + ("?" + urllib.parse.urlencode(query) if query else ""),
                               json.dumps(body) if body is not None else None, {"Content-Type": content})
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        if answer.status >= 300:
            raise Refused(answer.status, text[:500])
        return json.loads(text)


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)
