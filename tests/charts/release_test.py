#!/usr/bin/env python3
"""A release's life on a cluster of its own: install, upgrade, uninstall, and what its accounts may do meanwhile."""
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest
import urllib.request

import yaml

import tools
from testing import BIN, ROOT, main, wait_until

sys.path.insert(0, str(ROOT / "tests/cluster"))
import binaries  # noqa: E402
import control_plane  # noqa: E402
import supervisor  # noqa: E402

NAMESPACE, WATCHED = "ringmaster-system", "team-a"
CRD = "trainingjobs.training.ringmaster.dev"
# What Kubernetes grants everybody: to ask about oneself.
OF_EVERYBODY = {"selfsubjectreviews.authentication.k8s.io", "selfsubjectaccessreviews.authorization.k8s.io", "selfsubjectrulesreviews.authorization.k8s.io"}


def free_address():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return "127.0.0.1:%d" % free.getsockname()[1]


def page(address, name):
    try:
        with urllib.request.urlopen(f"http://{address}/{name}", timeout=10) as answer:
            return answer.read().decode().strip()
    except OSError:
        return ""


class ReleaseTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        tools.helm()
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="ringmaster-release-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        try:
            cls.kubeconfig = supervisor.start(cls.folder / "cluster", control_plane.Options(0, "", ()), os.getpid())
        except binaries.Missing as missing:
            raise unittest.SkipTest(str(missing))
        cls.addClassCleanup(supervisor.stop, cls.folder / "cluster")
        cls.kubectl("create", "namespace", WATCHED)

    @classmethod
    def kubectl(cls, *arguments, **options):
        return tools.run(binaries.find("kubectl"), f"--kubeconfig={cls.kubeconfig}", *arguments, **options)

    def helm(self, *arguments, by=tools.helm):
        return tools.run(by(), f"--kubeconfig={self.kubeconfig}", "--namespace", NAMESPACE, *arguments)

    def install(self, chart, *arguments, **options):
        return self.helm("upgrade", "--install", "--create-namespace", "ringmaster", chart, *arguments, **options)

    def names(self, kind):
        return [item["metadata"]["name"] for item in json.loads(self.kubectl("get", kind, "--all-namespaces", "-o", "json"))["items"]]

    def columns(self):
        return [column["name"] for column in json.loads(self.kubectl("get", "crd", CRD, "-o", "json"))["spec"]["versions"][0]["additionalPrinterColumns"]]

    def older_chart(self):
        """The chart as it was before the definition had the column Restarts."""
        chart = self.folder / "older"
        shutil.copytree(tools.CHART, chart)  # follows the link to crds/
        file, = (chart / "files/crds").iterdir()
        crd = yaml.safe_load(file.read_text())
        columns = crd["spec"]["versions"][0]["additionalPrinterColumns"]
        columns.remove(next(column for column in columns if column["name"] == "Restarts"))
        file.write_text("---\n" + yaml.safe_dump(crd))
        return chart

    def may(self, account, namespace=NAMESPACE):
        """{resource: verbs} of what an account may do in the namespace, without what everybody may."""
        lines = self.kubectl("auth", "can-i", "--list", "--no-headers", f"--as=system:serviceaccount:{NAMESPACE}:{account}", "--namespace", namespace)
        granted = {}
        for line in lines.splitlines():
            resource, verbs = line.split()[0], line[line.rindex("["):].strip("[]").split()
            if not resource.startswith(("[", "/")) and resource not in OF_EVERYBODY:
                granted.setdefault(resource, set()).update(verbs)
        return granted

    def test_the_definition_is_upgraded_and_it_and_the_jobs_outlive_the_release(self):
        self.install(self.older_chart())
        self.assertNotIn("Restarts", self.columns())
        self.kubectl("wait", "--for=condition=Established", "--timeout=60s", f"crd/{CRD}")
        self.kubectl("apply", "--namespace", WATCHED, "-f", ROOT / "examples/digits/job.yaml")
        self.install(tools.CHART)
        self.assertIn("Restarts", self.columns())
        self.helm("uninstall", "ringmaster")
        self.assertEqual(self.names("tj"), ["digits"])
        self.assertNotIn("ringmaster", self.names("deployments"))
        self.assertFalse([name for name in self.names("clusterroles") if "ringmaster" in name])
        self.install(tools.CHART)  # takes the definition that was left
        self.helm("uninstall", "ringmaster")

    def test_helm_3_installs_it_and_helm_4_upgrades_that(self):
        for helm in (tools.helm, tools.helm3):
            self.assertIn("kind: Deployment", self.install(tools.CHART, "--dry-run=server", by=helm))
        self.assertNotIn("ringmaster", self.names("deployments"))
        self.install(tools.CHART, by=tools.helm3)
        self.addCleanup(self.helm, "uninstall", "ringmaster")
        self.install(tools.CHART, "--set", "replicas=1")
        self.assertEqual([release["revision"] for release in json.loads(self.helm("list", "-o", "json", by=tools.helm3))], ["2"])
        deployment = json.loads(self.kubectl("get", "deployment", "ringmaster", "--namespace", NAMESPACE, "-o", "json"))
        self.assertEqual(deployment["spec"]["replicas"], 1)

    def test_accounts_may_do_what_they_must_and_no_more(self):
        self.install(tools.CHART, "--set", f"watchNamespace={WATCHED}")
        self.addCleanup(self.helm, "uninstall", "ringmaster")
        self.assertEqual(self.may("ringmaster-worker", WATCHED), {})
        self.assertEqual(self.may("ringmaster-worker", NAMESPACE), {})
        everywhere = {"tokenreviews.authentication.k8s.io": {"create"}, "customresourcedefinitions.apiextensions.k8s.io": {"get"}}
        self.assertEqual(self.may("ringmaster", "default"), everywhere)
        self.assertEqual(self.may("ringmaster", NAMESPACE), {
            **everywhere, "leases.coordination.k8s.io": {"create", "get", "update"}, "secrets": {"create", "get"}})
        self.assertEqual(self.may("ringmaster", WATCHED)["pods"], {"get", "list", "watch", "create", "delete"})
        self.assertNotIn("secrets", self.may("ringmaster", WATCHED))
        answer = self.kubectl("auth", "can-i", "get", "secrets/another", f"--as=system:serviceaccount:{NAMESPACE}:ringmaster", "--namespace", NAMESPACE,
                              check=False)
        self.assertEqual(answer[1].split()[-1], "no")

    def test_operator_with_the_charts_arguments_and_rights_gets_ready_and_leads(self):
        for watched in ("", WATCHED):
            with self.subTest(watched=watched):
                self.install(tools.CHART, "--set", f"watchNamespace={watched}")
                try:
                    self.play_operator()
                finally:
                    self.helm("uninstall", "ringmaster")

    def play_operator(self):
        """Runs the program as its pod would be run, but for addresses of this machine."""
        metrics = free_address()
        places = {"--rendezvous-address": "127.0.0.1:0", "--metrics-address": metrics}
        pod = json.loads(self.kubectl("get", "deployment", "ringmaster", "--namespace", NAMESPACE, "-o", "json"))["spec"]["template"]["spec"]
        arguments = [f"{flag}={places.get(flag, value)}" if value else flag
                     for flag, _, value in (argument.partition("=") for argument in pod["containers"][0]["args"])]
        with open(self.folder / "operator.log", "w+") as log:
            operator = subprocess.Popen([BIN / "ringmaster-operator", *arguments, f"--kubeconfig={self.kubeconfig_of(pod['serviceAccountName'])}",
                                         f"--lease-namespace={NAMESPACE}", "--host=127.0.0.1"], stdout=log, stderr=log)
            try:
                def leads():
                    self.assertIsNone(operator.poll(), (self.folder / "operator.log").read_text())
                    return page(metrics, "readyz") == "ok" and "ringmaster_operator_leading 1" in page(metrics, "metrics")
                wait_until(leads, lambda: "the operator to lead:\n" + (self.folder / "operator.log").read_text(), deadline=60, between=0.1)
                self.assertEqual(page(metrics, "healthz"), "ok")
                operator.terminate()
                self.assertEqual(operator.wait(timeout=60), 0)
            finally:
                operator.kill()
                operator.wait()
        lease = json.loads(self.kubectl("get", "lease", "ringmaster", "--namespace", NAMESPACE, "-o", "json"))
        self.assertFalse(lease["spec"].get("holderIdentity"), "the lease was not released")

    def kubeconfig_of(self, account):
        token = self.kubectl("create", "token", account, "--namespace", NAMESPACE)
        config = yaml.safe_load(pathlib.Path(self.kubeconfig).read_text())
        config["users"] = [{"name": user["name"], "user": {"token": token.strip()}} for user in config["users"]]
        mine = self.folder / "operator.kubeconfig"
        mine.write_text(json.dumps(config))
        return mine

    def test_people_who_may_edit_a_namespace_may_edit_its_jobs(self):
        if binaries.missing(["kube-controller-manager"]):
            raise unittest.SkipTest("roles are aggregated by kube-controller-manager, which is not there")
        self.install(tools.CHART)
        self.addCleanup(self.helm, "uninstall", "ringmaster")
        self.kubectl("create", "rolebinding", "editor", "--clusterrole=edit", "--user=someone", "--namespace", WATCHED)
        self.kubectl("create", "rolebinding", "viewer", "--clusterrole=view", "--user=another", "--namespace", WATCHED)

        def can(user, verb):
            return self.kubectl("auth", "can-i", verb, "trainingjobs", f"--as={user}", "--namespace", WATCHED, check=False)[0] == 0
        wait_until(lambda: can("someone", "create") and can("another", "list"), "the roles to be aggregated", deadline=60, between=0.2)
        self.assertFalse(can("another", "create"))


if __name__ == "__main__":
    main()
