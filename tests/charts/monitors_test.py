#!/usr/bin/env python3
"""What the chart's ServiceMonitor and PodMonitor select: the Prometheus operator makes a configuration of them, and a Prometheus with it finds
exactly the operators' pods and the workers, and reads these as the dashboards and the rules expect.

Debian's Prometheus cannot ask an API server. What it would ask for is found by Prometheus' own code in a program beside it, which hands it over in
files with all of its labels; selecting by them, relabelling and reading are Debian's again.
"""
import base64
import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import yaml

import tools
from prometheus import Prometheus
from testing import ROOT, free_port, main, wait_until

sys.path.insert(0, str(ROOT / "tests/integration/kubernetes"))
from cluster_test_case import LOOK, kubectl, wait_until_established  # noqa: E402
from story_test_case import ENDLESS, StoryTest, digits  # noqa: E402
import supervisor  # noqa: E402  of tests/cluster

METRICS_PORT = 7470  # of operators, as the chart's values say
WORKERS_PORT = 7472


class MonitorsTest(StoryTest):
    @classmethod
    def setUpClass(cls):
        tools.prometheus_operator(), tools.prometheus_discovery(), tools.prometheus()
        super().setUpClass()
        for file in tools.monitoring_definitions("servicemonitors", "podmonitors", "prometheusrules", "probes", "prometheuses"):
            kubectl("apply", "--server-side", "-f", str(file))
            wait_until_established("-f", str(file))

    def install(self, *kinds, watched):
        """The chart's objects of these kinds, for the jobs of one namespace, or of all where `watched` is empty."""
        rendered = tools.template("--set", "metrics.serviceMonitor.enabled=true,metrics.podMonitor.enabled=true,metrics.podMonitor.interval=1s",
                                  "--set", f"watchNamespace={watched}", namespace=self.namespace)
        for item in yaml.safe_load_all(rendered):
            if item and item["kind"] in kinds:
                self.apply(item)

    def make_prometheus(self):
        """The object that the Prometheus operator makes a configuration for, with an account as its users are told to make one."""
        self.kubectl("create", "serviceaccount", "prometheus")
        name = f"{self.namespace}-prometheus"
        self.apply({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": [
            {"apiGroups": [""], "resources": ["services", "endpoints", "pods"], "verbs": ["get", "list", "watch"]}]})
        self.addCleanup(kubectl, "delete", "clusterrole", name, "--wait=false")
        kubectl("create", "clusterrolebinding", name, f"--clusterrole={name}", f"--serviceaccount={self.namespace}:prometheus")
        self.addCleanup(kubectl, "delete", "clusterrolebinding", name, "--wait=false")
        cluster = json.loads(kubectl("config", "view", "--raw", "--flatten", "--minify", "-o", "json"))["clusters"][0]["cluster"]
        token, authority = self.folder / "prometheus.token", self.folder / "prometheus.ca"
        token.write_text(self.kubectl("create", "token", "prometheus").strip())
        authority.write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
        self.apply({"apiVersion": "monitoring.coreos.com/v1", "kind": "Prometheus", "metadata": {"name": "test"}, "spec": {
            "version": "v2.42.0", "replicas": 0, "serviceMonitorSelector": {}, "podMonitorSelector": {},
            "apiserverConfig": {"host": cluster["server"], "bearerTokenFile": str(token), "tlsConfig": {"caFile": str(authority)}}}})

    def run_beside(self, command, log, **options):
        """A program that ends with the test."""
        with open(self.folder / log, "w") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output, preexec_fn=lambda parent=os.getpid(): supervisor.die_with(parent), **options)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def run_prometheus_operator(self):
        self.run_beside([tools.prometheus_operator(), f"--namespaces={self.namespace}", f"--web.listen-address=127.0.0.1:{free_port()}"],
                        "prometheus-operator.log", env={**os.environ, "KUBECONFIG": os.environ["RINGMASTER_TEST_KUBECONFIG"]})

    def configuration(self, fits):
        """What the Prometheus operator has made, once `fits(its jobs by name)`, with what its reloader puts in at each replica."""
        made = {}

        def there():
            code, text = self.kubectl("get", "secret", "prometheus-test", "-o", "json", check=False)
            if code != 0:
                return None
            packed = base64.b64decode(json.loads(text)["data"]["prometheus.yaml.gz"])
            made.update(yaml.safe_load(gzip.decompress(packed).decode().replace("$(SHARD)", "0").replace("$(POD_NAME)", "prometheus-test-0")))
            return made if fits({job["job_name"]: job for job in made.get("scrape_configs") or []}) else None
        return wait_until(there, lambda: f"the configuration: {made} " + (self.folder / "prometheus-operator.log").read_text()[-3000:], between=LOOK)

    def put_discovery_before(self, configuration):
        """Starts it, instead of the one before, and returns the configuration that reads what it finds."""
        folder = self.folder / "discovered"
        folder.mkdir(exist_ok=True)
        if self.discovery:
            self.discovery.kill()
        (folder / "wanted.yaml").write_text(json.dumps(configuration))
        self.discovery = self.run_beside([tools.prometheus_discovery(), folder / "wanted.yaml", folder], "prometheus-discovery.log")
        jobs = [{**{key: value for key, value in job.items() if key != "kubernetes_sd_configs"}, "file_sd_configs": [
            {"files": [f"{folder}/{job['job_name'].replace('/', '_')}.json"], "refresh_interval": "1s"}]} for job in configuration["scrape_configs"]]
        return json.dumps({**configuration, "scrape_configs": jobs})

    def start_prometheus(self, configuration):
        self.discovery = None
        folder = tempfile.TemporaryDirectory(prefix="ringmaster-prometheus-")
        self.addCleanup(folder.cleanup)
        self.prometheus = Prometheus(pathlib.Path(folder.name), self.put_discovery_before(configuration))
        self.addCleanup(self.prometheus.stop)

    def targets(self, monitor):
        """(URL, labels) of each active target of the monitor."""
        pool = f"{monitor}/0"
        return sorted(((target["scrapeUrl"], target["labels"]) for target in self.prometheus.get("targets", state="active")["activeTargets"]
                       if target["scrapePool"] == pool), key=lambda target: target[0])

    def wait_for_targets(self, monitor, expected):
        expected = sorted(expected, key=lambda target: target[0])
        wait_until(lambda: self.targets(monitor) == expected,
                   lambda: f"{monitor} to have the targets\n{expected}\nit has\n{self.targets(monitor)}", deadline=120, between=LOOK)

    def operators(self):
        """The Deployment's pods, once all run."""
        def there():
            items = json.loads(self.kubectl("get", "pods", "-l", "app.kubernetes.io/component=operator", "-o", "json"))["items"]
            return items if len(items) == 2 and all(item["status"].get("podIP") for item in items) else None
        return wait_until(there, "the operators' pods", between=LOOK)

    def worker(self, pod, namespace, address):
        """The target that the pod of a worker should be."""
        return f"http://{address}:{WORKERS_PORT}/metrics", {
            "job": f"{self.namespace}/ringmaster-workers", "namespace": namespace, "pod": pod["metadata"]["name"], "instance": f"{address}:{WORKERS_PORT}",
            "training_job": "story", "worker": pod["metadata"]["labels"]["training.ringmaster.dev/index"]}

    def copy_to_another_namespace(self, pod):
        """A pod with the same labels in a namespace of its own."""
        name = json.loads(kubectl("create", "-o", "json", "-f", "-", stdin=json.dumps(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "test-"}})))["metadata"]["name"]
        self.addCleanup(kubectl, "delete", "namespace", name, "--wait=false")
        wait_until(lambda: kubectl("get", "serviceaccount", "default", "-n", name, "--ignore-not-found"), "the namespace's account", between=LOOK)
        item = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod["metadata"]["name"], "labels": pod["metadata"]["labels"]},
                "spec": {"containers": pod["spec"]["containers"], "volumes": pod["spec"]["volumes"]}}
        for container in item["spec"]["containers"]:  # of the account, which is not the same there
            container["volumeMounts"] = [mount for mount in container.get("volumeMounts", []) if "kube-api-access" not in mount["name"]]
        kubectl("apply", "-n", name, "-f", "-", stdin=json.dumps(item))

        def there():
            found = json.loads(kubectl("get", "pod", item["metadata"]["name"], "-n", name, "-o", "json"))
            return found if found["status"].get("podIP") else None
        return wait_until(there, "the copy to run", between=LOOK)

    def test_they_select_the_operators_and_the_workers_and_nothing_else(self):
        self.run_prometheus_operator()
        self.install("ServiceAccount", "Deployment", "Service", "ServiceMonitor", "PodMonitor", watched=self.namespace)
        # Of the same pods and port, but not the chart's.
        self.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "another"}, "spec": {
            "selector": {"app.kubernetes.io/component": "operator"}, "ports": [{"name": "metrics", "port": 80, "targetPort": "metrics"}]}})
        self.make_prometheus()
        self.apply(self.job_with_a_sidecar())
        self.wait_for_step(1)
        workers = [self.pods()[name] for name in ("story-0-0", "story-1-0")]
        elsewhere = self.copy_to_another_namespace(workers[0])

        monitors = [f"{kind}Monitor/{self.namespace}/{name}" for kind, name in (("service", "ringmaster"), ("pod", "ringmaster-workers"))]
        self.start_prometheus(self.configuration(lambda jobs: set(jobs) == {f"{monitor}/0" for monitor in monitors}))
        self.wait_for_targets(monitors[0], [(f"http://{pod['status']['podIP']}:{METRICS_PORT}/metrics", {
            "job": "ringmaster", "service": "ringmaster", "endpoint": "metrics", "container": "operator", "namespace": self.namespace,
            "pod": pod["metadata"]["name"], "instance": f"{pod['status']['podIP']}:{METRICS_PORT}"}) for pod in self.operators()])
        here = [self.worker(pod, self.namespace, pod["status"]["podIP"]) for pod in workers]
        self.wait_for_targets(monitors[1], here)
        for worker in ("0", "1"):
            query = f'ringmaster_trainer_steps_total{{namespace="{self.namespace}",training_job="story",worker="{worker}"}}'
            wait_until(lambda query=query: self.prometheus.ask("query", query=query), f"{query} to be read", deadline=60, between=LOOK)

        # For all namespaces: the worker of the other one too, and of these two namespaces no more.
        self.install("PodMonitor", watched="")
        self.prometheus.reload(self.put_discovery_before(self.configuration(
            lambda jobs: not any("namespaces" in found for found in jobs[f"{monitors[1]}/0"]["kubernetes_sd_configs"]))))
        everywhere = [*here, self.worker(elsewhere, elsewhere["metadata"]["namespace"], elsewhere["status"]["podIP"])]
        namespaces = {labels["namespace"] for _, labels in everywhere}

        def found():
            return [target for target in self.targets(monitors[1]) if target[1]["namespace"] in namespaces]
        wait_until(lambda: found() == sorted(everywhere, key=lambda target: target[0]), lambda: f"the targets {everywhere}\nthere are\n{found()}",
                   deadline=120, between=LOOK)

    @staticmethod
    def job_with_a_sidecar():
        """Whose pods have a second container, with ports of its own: Prometheus finds such a pod once for each."""
        item = digits(epochs=ENDLESS)
        restricted = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
        item["spec"]["workers"]["template"]["spec"] = {
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{"name": "worker", "securityContext": restricted}, {
                "name": "logs", "image": "logs", "securityContext": restricted, "ports": [{"name": "http", "containerPort": 80}, {"containerPort": 81}]}]}
        return item


if __name__ == "__main__":
    main()
