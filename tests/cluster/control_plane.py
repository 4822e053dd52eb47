"""A Kubernetes control plane on this machine: what runs, with which certificates and flags.

Everything a cluster has lies in its folder: certificates, kubeconfigs, etcd's data, one log per program. Each cluster has a loopback address
of its own with ports that were free, TLS everywhere and RBAC. `supervisor.py` keeps the programs; `up` and `down` are what people call.
"""
import base64
import dataclasses
import hashlib
import http.client
import json
import pathlib
import random
import socket
import ssl
import subprocess
import time

import binaries
import certificates
import namespaces
import node

HERE = pathlib.Path(__file__).resolve().parent
# Of services, and that of the API server, inside the cluster; one family of addresses for all of it.
SERVICES = {4: ("10.96.0.0/16", "10.96.0.1"), 6: ("fd00:96::/112", "fd00:96::1")}
NODE_GRACE = "20s"  # after which a real node that is silent is not ready; it speaks every 5 s. Kubernetes' own default is 50
DEADLINE = 300  # seconds that any one part may take to start; 4 to 12 on two quiet cores


@dataclasses.dataclass
class Options:
    """What `up` was asked for."""
    nodes: int = 2  # kwok's; with 0 kwok does not run, and without any node the scheduler neither
    address: str = ""  # where the API server listens and is found by nodes; a loopback address of its own where empty
    api_server: tuple = ()  # further flags of the API server
    kubelets: int = 0  # real nodes; the caller has entered namespaces for them then
    images: tuple = ()  # archives of images that real nodes shall have
    feature_gates: str = ""  # of all of Kubernetes' own programs: "GangScheduling=true,…"
    scheduler: tuple = ()  # further flags of the scheduler


class ControlPlane:
    """The parts of one cluster; `start` returns when it is usable.

    It runs them through `spawn(name, [program, flag…])`, and while it waits calls `check()`, which raises when one of them has ended.
    """

    def __init__(self, folder, options):
        self.folder = pathlib.Path(folder)
        self.options = options
        self.kubeconfig = self.folder / "kubeconfig"
        self._address = options.address or _own_loopback_address()
        self._service_range, self._service_address = SERVICES[6 if ":" in self._address else 4]
        self._ports = _free_ports(self._address, 6)

    def start(self, spawn, check):
        self._check = check
        started = [name for name in ("kube-controller-manager", "kube-scheduler", "kwok") if self._wanted(name)]
        self._make_certificates()
        spawn("etcd", self._etcd())
        spawn("kube-apiserver", self._api_server())
        self._wait(lambda api: api.get("/readyz"), "the API server to be ready")
        for name in started:  # not before: without the bootstrap roles they exit
            spawn(name, getattr(self, "_" + name.removeprefix("kube-").replace("-", "_"))())
        if "kube-controller-manager" in started:
            self._wait(lambda api: api.get("/api/v1/namespaces/default/serviceaccounts/default"), "the controllers to work")
        if "kwok" in started:
            self._make_nodes()
        if self.options.kubelets:
            self._start_kubelets(spawn)

    def _wanted(self, name):
        if name == "kwok" and not self.options.nodes or name == "kube-scheduler" and not (self.options.nodes or self.options.kubelets):
            return False
        return not binaries.missing([name])  # KUBEBUILDER_ASSETS has the API server alone

    def _make_certificates(self):
        authority = certificates.Authority(self.folder, "ca")
        authority.issue("kube-apiserver", "/CN=kube-apiserver", [
            f"IP:{self._address}", f"IP:{self._service_address}", "DNS:localhost", "DNS:kubernetes", "DNS:kubernetes.default",
            "DNS:kubernetes.default.svc", "DNS:kubernetes.default.svc.cluster.local"])
        authority.issue("kubelet-client", "/O=system:masters/CN=kube-apiserver-kubelet-client")
        certificates.key_pair(self.folder, "service-accounts")
        etcd = certificates.Authority(self.folder, "etcd-ca")
        etcd.issue("etcd", "/CN=etcd", [f"IP:{self._address}"])
        etcd.issue("etcd-client", "/CN=kube-apiserver")
        self.write_kubeconfig(authority, "kubeconfig", "/O=system:masters/CN=admin")
        for component in ("kube-controller-manager", "kube-scheduler"):
            self.write_kubeconfig(authority, f"{component}.kubeconfig", f"/CN=system:{component}")
        self.write_kubeconfig(authority, "kwok.kubeconfig", "/O=system:masters/CN=kwok")
        if self.options.kubelets:
            self.write_kubeconfig(authority, "kube-proxy.kubeconfig", "/CN=system:kube-proxy")
            self.write_kubeconfig(authority, "coredns.kubeconfig", "/O=system:masters/CN=coredns")
            for name in node.addresses(self.options.kubelets):
                self.write_kubeconfig(authority, f"{name}.kubeconfig", f"/O=system:nodes/CN=system:node:{name}")

    def write_kubeconfig(self, authority, name, subject):
        """A kubeconfig in the cluster's folder for who the subject names, self-contained."""
        certificate, key = authority.issue(name + ".client", subject)
        path = self.folder / name
        path.touch(mode=0o600)
        path.write_text(f"""apiVersion: v1
kind: Config
current-context: test
contexts:
- name: test
  context: {{cluster: test, user: test}}
clusters:
- name: test
  cluster:
    server: https://{_host(self._address)}:{self._ports[0]}
    certificate-authority-data: {_base64(authority.certificate)}
users:
- name: test
  user:
    client-certificate-data: {_base64(certificate)}
    client-key-data: {_base64(key)}
""")

    def _etcd(self):
        client = f"https://{_host(self._address)}:{self._ports[1]}"
        peer = f"https://{_host(self._address)}:{self._ports[2]}"
        tls = ["--{}cert-file=etcd.crt", "--{}key-file=etcd.key", "--{}trusted-ca-file=etcd-ca.crt", "--{}client-cert-auth"]
        return [binaries.find("etcd"), "--name=test", "--data-dir=etcd", "--unsafe-no-fsync", "--log-level=warn",
                f"--listen-client-urls={client}", f"--advertise-client-urls={client}", f"--listen-peer-urls={peer}",
                f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=test={peer}",
                *(flag.format(kind) for kind in ("", "peer-") for flag in tls)]

    def _api_server(self):
        published = ["--endpoint-reconciler-type=none", "--advertise-address=192.0.2.1"]  # a loopback address cannot be published
        if self.options.address:
            published = [f"--advertise-address={self._address}"]
        return [binaries.find("kube-apiserver"), f"--bind-address={self._address}", f"--secure-port={self._ports[0]}", *published,
                f"--etcd-servers=https://{_host(self._address)}:{self._ports[1]}", "--etcd-cafile=etcd-ca.crt",
                "--etcd-certfile=etcd-client.crt", "--etcd-keyfile=etcd-client.key", f"--service-cluster-ip-range={self._service_range}",
                "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged",
                "--client-ca-file=ca.crt", "--tls-cert-file=kube-apiserver.crt", "--tls-private-key-file=kube-apiserver.key",
                "--kubelet-client-certificate=kubelet-client.crt", "--kubelet-client-key=kubelet-client.key",
                "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
                "--service-account-key-file=service-accounts.pub", "--service-account-signing-key-file=service-accounts.key",
                "--profiling=false", *self._gates(), *self.options.api_server]

    def _controller_manager(self):
        return [*self._component("kube-controller-manager", self._ports[3]), "--use-service-account-credentials",
                "--service-account-private-key-file=service-accounts.key", "--root-ca-file=ca.crt",
                *([f"--node-monitor-grace-period={NODE_GRACE}"] if self.options.kubelets else [])]

    def _scheduler(self):
        return [*self._component("kube-scheduler", self._ports[4]), *self.options.scheduler]

    def _component(self, name, port):
        return [binaries.find(name), f"--kubeconfig={name}.kubeconfig", f"--bind-address={self._address}", f"--secure-port={port}",
                "--leader-elect=false", "--profiling=false", *self._gates()]

    def _gates(self):
        return [f"--feature-gates={self.options.feature_gates}"] if self.options.feature_gates else []

    def _kwok(self):
        return [binaries.find("kwok"), "--kubeconfig=kwok.kubeconfig", f"--config={HERE / 'stages.yaml'}", "--manage-all-nodes=false",
                "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake", f"--node-ip={self._address}",
                f"--server-address={_host(self._address)}:{self._ports[5]}", "--node-lease-duration-seconds=40"]

    def _make_nodes(self):
        names = [f"node-{number}" for number in range(self.options.nodes)]
        for name in names:
            self._wait(lambda api, name=name: api.post("/api/v1/nodes", {
                "apiVersion": "v1", "kind": "Node",
                "metadata": {"name": name, "annotations": {"kwok.x-k8s.io/node": "fake"},
                             "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "type": "kwok"}}}), f"{name} to be made")
        for name in names:
            self._wait(lambda api, name=name: _is_ready(api.get(f"/api/v1/nodes/{name}")), f"{name} to be ready")

    def _start_kubelets(self, spawn):
        shared = node.Shared(self.folder)
        shared.prepare()
        for path, item in shared.objects():
            self._wait(lambda api, path=path, item=item: api.post(path, item), "the DNS' Service to be made")
        nodes = [node.Node(self.folder, number, name, address, cgroup(self.folder))
                 for number, (name, address) in enumerate(node.addresses(self.options.kubelets).items())]
        namespaces.make_cgroup(cgroup(self.folder))
        for each in nodes:
            namespaces.make_cgroup(f"{cgroup(self.folder)}/{each.name}")
            each.prepare()
            spawn(f"containerd-{each.name}", each.containerd())
        for each in nodes:
            self._wait(lambda api, each=each: _listens(each.socket), f"containerd of {each.name}")
            self._import_images(each)
            spawn(f"kubelet-{each.name}", each.kubelet())
        spawn("registry", shared.registry())
        spawn("coredns", shared.coredns())
        spawn("kube-proxy", shared.kube_proxy())
        self._wait(lambda api: socket.create_connection(tuple(node.REGISTRY.split(":")), timeout=1).close() or True, "the registry")
        for each in nodes:
            self._wait(lambda api, each=each: _is_ready(api.get(f"/api/v1/nodes/{each.name}")), f"{each.name} to be ready")

    def _import_images(self, each):
        for image in self.options.images:
            done = subprocess.run(each.ctr("images", "import", image), capture_output=True, text=True, timeout=DEADLINE)
            if done.returncode != 0:
                raise RuntimeError(f"{image} cannot be imported into {each.name}: {done.stderr.strip()}")

    def _wait(self, condition, what):
        """Returns the first true value of `condition(api)`; raises TimeoutError with the last answer after the deadline."""
        api, end, last = Api(self.folder, self._address, self._ports[0]), time.monotonic() + DEADLINE, ""
        while time.monotonic() < end:
            self._check()
            try:
                value = condition(api)
                if value:
                    return value
            except (OSError, http.client.HTTPException) as error:
                last = f": {error}"
            time.sleep(0.05)  # between two looks; nothing depends on its length
        raise TimeoutError(f"waited {DEADLINE} s in vain for {what}{last}")


class Api:
    """The API server, asked as admin. A refusal is an OSError with what the server said."""

    def __init__(self, folder, address, port):
        self._where = (address, port)
        self._folder = pathlib.Path(folder)

    def get(self, path):
        return self._ask("GET", path)

    def post(self, path, item):
        return self._ask("POST", path, item)

    def _ask(self, method, path, item=None):
        context = ssl.create_default_context(cafile=str(self._folder / "ca.crt"))
        context.load_cert_chain(self._folder / "kubeconfig.client.crt", self._folder / "kubeconfig.client.key")
        connection = http.client.HTTPSConnection(*self._where, timeout=30, context=context)
        try:
            connection.request(method, path, json.dumps(item) if item else None, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        if answer.status >= 300 and answer.status != 409:  # 409: made by the try before, whose answer was lost
            raise OSError(f"{method} {path}: {answer.status} {text[:300]}")
        return json.loads(text) if text.startswith("{") else text


def _is_ready(node):
    return any(item["type"] == "Ready" and item["status"] == "True" for item in node.get("status", {}).get("conditions", []))


def _listens(path):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(path))
    return True


def cgroup(folder):
    """The name of the cgroup of all that runs on a cluster's real nodes."""
    return "ringmaster-" + hashlib.sha256(str(pathlib.Path(folder).resolve()).encode()).hexdigest()[:12]


def _own_loopback_address():
    # All of 127.0.0.0/8 is this machine. Two clusters with the same one still differ in their ports.
    return f"127.{random.randint(64, 126)}.{random.randint(1, 254)}.1"


def _free_ports(address, count):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sockets = [socket.create_server((address, 0), family=family) for _ in range(count)]
    ports = [taken.getsockname()[1] for taken in sockets]
    for taken in sockets:
        taken.close()
    return ports


def _host(address):
    return f"[{address}]" if ":" in address else address


def _base64(path):
    return base64.b64encode(path.read_bytes()).decode()
