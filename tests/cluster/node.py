"""Real nodes for the test cluster: a kubelet and a containerd each, and, once for all, kube-proxy, the cluster's DNS and a registry.

They live in namespaces of their own (namespaces.py) and share one network there: a node is an address. Pods of all of them are on one bridge.
What a node writes lies under /run there, in memory; its logs lie in the cluster's folder.
"""
import json
import os
import pathlib

import binaries
import packages

CONTROL_PLANE_ADDRESS = "10.200.0.1"
DNS_SERVICE = "10.96.0.10"
REGISTRY = "127.0.0.1:5000"  # there; without TLS, which containerd takes from this machine alone
DOMAIN = "cluster.local"
PODS = "10.244.0.0/16"
SANDBOX_IMAGE = "localhost/ringmaster-test-base:1"
RUN = pathlib.Path("/run")


def addresses(count):
    return {f"node-{number}": f"10.200.0.{11 + number}" for number in range(count)}


def hosts(count):
    lines = ["127.0.0.1 localhost", "::1 localhost", *(f"{address} {name}" for name, address in addresses(count).items())]
    return "\n".join(lines) + "\n"


class Node:
    """One node. Its programs' flags and files; who runs them is not its business."""

    def __init__(self, folder, number, name, address, cgroup):
        self.name = name
        self._folder, self._number, self._address, self._cgroup = pathlib.Path(folder), number, address, cgroup
        self._own = RUN / name
        self.socket = self._own / "containerd.sock"

    def prepare(self):
        (self._own / "cni").mkdir(parents=True)
        (self._own / "cni/10-pods.conflist").write_text(json.dumps(self._network()))
        (self._own / "containerd.toml").write_text(self._containerd_config())
        (self._own / "kubelet.json").write_text(json.dumps(self._kubelet_config()))

    def containerd(self):
        return [packages.find("containerd"), f"--config={self._own}/containerd.toml", "--log-level=warn"]

    def kubelet(self):
        return [binaries.find("kubelet"), f"--config={self._own}/kubelet.json", f"--kubeconfig={self.name}.kubeconfig",
                f"--hostname-override={self.name}", f"--node-ip={self._address}", f"--root-dir={self._own}/kubelet", f"--cert-dir={self._own}/pki"]

    def ctr(self, *arguments):
        return [packages.find("ctr"), f"--address={self.socket}", "--namespace=k8s.io", *arguments]

    def _network(self):
        share = f"10.244.{self._number}."
        first = 2 if self._number == 0 else 1  # the bridge has 10.244.0.1
        addresses_ = {"type": "host-local", "dataDir": "/run/cni/networks", "routes": [{"dst": "0.0.0.0/0"}],
                      "ranges": [[{"subnet": PODS, "rangeStart": f"{share}{first}", "rangeEnd": f"{share}250", "gateway": "10.244.0.1"}]]}
        return {"cniVersion": "1.0.0", "name": f"pods-{self.name}", "plugins": [
            {"type": "bridge", "bridge": "pods", "isGateway": True, "hairpinMode": True, "ipam": addresses_}]}

    def _containerd_config(self):
        cri = 'plugins."io.containerd.grpc.v1.cri"'
        return f"""version = 2
root = "{self._own}/containerd"
state = "{self._own}/containerd-state"
disabled_plugins = ["io.containerd.internal.v1.opt"]
[grpc]
address = "{self.socket}"
[{cri}]
sandbox_image = "{SANDBOX_IMAGE}"
restrict_oom_score_adj = true
[{cri}.cni]
bin_dir = "{pathlib.Path(packages.find("bridge")).parent}"
conf_dir = "{self._own}/cni"
[{cri}.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[{cri}.containerd.runtimes.runc.options]
BinaryName = "{packages.find("runc")}"
SystemdCgroup = false
"""

    def _kubelet_config(self):
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "address": self._address,
            "healthzBindAddress": self._address, "containerRuntimeEndpoint": f"unix://{self.socket}",
            "authentication": {"x509": {"clientCAFile": str(self._folder / "ca.crt")}, "anonymous": {"enabled": False}, "webhook": {"enabled": True}},
            "authorization": {"mode": "Webhook"}, "clusterDNS": [DNS_SERVICE], "clusterDomain": DOMAIN, "resolvConf": "/etc/resolv.conf",
            "cgroupDriver": "cgroupfs", "cgroupRoot": f"/{self._cgroup}/{self.name}", "failCgroupV1": False, "failSwapOn": False,
            "podLogsDir": f"{self._own}/pods", "volumePluginDir": f"{self._own}/plugins",
            # The disk is memory here, and of no concern.
            "evictionHard": {"memory.available": "1%", "nodefs.available": "0%", "imagefs.available": "0%"}, "imageGCHighThresholdPercent": 100,
            "localStorageCapacityIsolation": False, "nodeStatusUpdateFrequency": "5s", "maxPods": 40}


class Shared:
    """What the nodes have together, each once: service addresses, names, and a registry of images and charts, empty at first."""

    def __init__(self, folder):
        self._folder = pathlib.Path(folder)

    def prepare(self):
        (self._folder / "kube-proxy.json").write_text(json.dumps({
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "mode": "iptables", "clusterCIDR": PODS,
            "clientConnection": {"kubeconfig": "kube-proxy.kubeconfig"}, "hostnameOverride": "node-0",
            "healthzBindAddress": "", "metricsBindAddress": "127.0.0.1:10249",
            "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"}}))
        (self._folder / "Corefile").write_text(f""".:53 {{
  errors
  kubernetes {DOMAIN} in-addr.arpa {{
    kubeconfig {self._folder}/coredns.kubeconfig
  }}
}}
""")
        (self._folder / "registry.json").write_text(json.dumps({  # YAML too
            "version": 0.1, "log": {"level": "warn", "accesslog": {"disabled": True}}, "http": {"addr": REGISTRY},
            "storage": {"filesystem": {"rootdirectory": str(RUN / "registry")}}}))

    def kube_proxy(self):
        return [binaries.find("kube-proxy"), f"--config={self._folder}/kube-proxy.json"]

    def coredns(self):
        return [binaries.find("coredns"), "-conf", f"{self._folder}/Corefile"]

    def registry(self):
        return [packages.find("docker-registry"), "serve", f"{self._folder}/registry.json"]

    @staticmethod
    def objects():
        """(path, object) of the DNS' Service."""
        labels, ports = {"k8s-app": "kube-dns"}, [{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "dns-tcp", "port": 53, "protocol": "TCP"}]
        yield "/api/v1/namespaces/kube-system/services", {
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "kube-dns", "labels": labels},
            "spec": {"clusterIP": DNS_SERVICE, "ports": ports}}
        yield "/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices", {
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4", "ports": ports,
            "metadata": {"name": "kube-dns-1", "labels": {"kubernetes.io/service-name": "kube-dns"}},
            "endpoints": [{"addresses": [CONTROL_PLANE_ADDRESS], "conditions": {"ready": True}}]}
