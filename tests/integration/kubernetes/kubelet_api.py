"""The part of a kubelet that the API server asks: the logs of containers, over TLS, at an address that a Node object names."""
import http.server
import pathlib
import ssl
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "cluster"))
import certificates  # noqa: E402

LOOK = 0.02  # seconds between two looks at a log that is followed


class KubeletApi:
    """Registers a node and serves the logs of the kubelet's pods there. Pods come to it by `nodeName`: `node`."""

    def __init__(self, api, kubelet, namespace, folder):
        self.node, self._api = f"node-of-{namespace}", api
        self.requests = []  # (pod, query) of every log that was asked for
        self.broken = threading.Event()  # while set, every log breaks off
        certificate, key = certificates.Authority(folder, "kubelet-ca").issue("kubelet", "/CN=kubelet", ["IP:127.0.0.1"])
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(certificate, key)
        served = self

        class Handler(_Handler):
            owner, pods = served, kubelet

        self._http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._http.socket = tls.wrap_socket(self._http.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        self._register()

    def _register(self):
        self._api.post("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.node}})
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._api.patch(f"/api/v1/nodes/{self.node}/status", {"status": {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self._http.server_address[1]}},
            "conditions": [{"type": "Ready", "status": "True", "reason": "Test", "lastHeartbeatTime": now, "lastTransitionTime": now}]}})

    def close(self):
        self._api.delete(f"/api/v1/nodes/{self.node}")
        self._http.shutdown()
        self._http.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner = pods = None

    def log_message(self, *arguments):
        pass

    def do_GET(self):
        where = urllib.parse.urlsplit(self.path)
        parts, query = where.path.split("/"), dict(urllib.parse.parse_qsl(where.query))
        if parts[1] != "containerLogs":
            self._refuse(404, "not served here")
            return
        pod = parts[3]
        self.owner.requests.append((pod, query))
        since = self.pods.since(pod)
        if since is None:
            self._refuse(400, f'container "{parts[4]}" in pod "{pod}" is waiting to start: ContainerCreating')
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            self._send_log(pod, since, query)
        except OSError:  # whoever asked has gone
            self.close_connection = True

    def _refuse(self, code, text):
        self.send_response(code)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def _chunk(self, text):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))
        self.wfile.flush()

    def _send_log(self, pod, since, query):
        """Every line is stamped with the container's start and its own number in nanoseconds: the same whenever it is asked for."""
        shown, first = 0, True
        while True:
            ended = self.pods.ended(pod)  # asked before reading: what was written until then is read too
            lines = self.pods.log(pod).splitlines(keepends=True)
            if lines and not lines[-1].endswith("\n") and not ended:
                lines.pop()
            if first and "tailLines" in query:
                shown = max(0, len(lines) - int(query["tailLines"]))
            if first and "sinceTime" in query and query["sinceTime"] > since:
                shown = len(lines)
            first = False
            for number in range(shown, len(lines)):
                stamp = f"{since[:-1]}.{number:09d}Z " if query.get("timestamps") == "true" else ""
                self._chunk((stamp + lines[number]).encode())
            shown = len(lines)
            if self.owner.broken.is_set():
                self.close_connection = True
                return
            if ended or query.get("follow") != "true":
                self._chunk(b"")
                return
            time.sleep(LOOK)  # between two looks; nothing depends on its length
