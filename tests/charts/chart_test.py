#!/usr/bin/env python3
"""The chart as helm sees it: what it renders in several shapes, and what it refuses."""
import json
import pathlib
import re
import sys
import unittest

import yaml

import tools
from testing import ROOT, main

CRD = ROOT / "crds/training.ringmaster.dev_trainingjobs.yaml"
MONITORING = ["--set", "metrics.serviceMonitor.enabled=true,metrics.podMonitor.enabled=true,metrics.rules.enabled=true",
              "--set", "metrics.dashboards.enabled=true"]
# What users make of it. Each must render, and hold only objects that are written once.
SHAPES = {
    "plain": [],
    "all": [*MONITORING, "--set", "commonLabels.team=ml,priorityClassName=system-cluster-critical,imagePullSecrets[0].name=pull",
            "--set", "worker.serviceAccount.namespaces={team-a,team-b},podAnnotations.a=b,podLabels.c=d",
            "--set", "metrics.serviceMonitor.labels.release=prometheus,metrics.rules.alertLabels.team=ml",
            "--set", "networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.a=b,serviceAccount.annotations.e=f",
            "--set", "extraArgs={--concurrent-jobs=8},extraEnv[0].name=A,extraEnv[0].value=b,tolerations[0].operator=Exists"],
    "one namespace": ["--set", "watchNamespace=team-a", *MONITORING],
    "bare": ["--set", "crds.install=false,rbac.create=false,rbac.aggregate=false,serviceAccount.create=false,serviceAccount.name=mine",
             "--set", "worker.serviceAccount.create=false,networkPolicy.enabled=false,podDisruptionBudget.enabled=false,replicas=1"],
}


def objects(*arguments, **options):
    return [item for item in yaml.safe_load_all(tools.template(*arguments, **options)) if item]


def only(items, kind, name=None):
    found = [item for item in items if item["kind"] == kind and name in (None, item["metadata"]["name"])]
    if len(found) != 1:
        raise AssertionError(f"{len(found)} objects of kind {kind}, name {name}")
    return found[0]


RIGHTS = json.loads((tools.CHART / "files/rbac.json").read_text().replace("NAME", "ringmaster"))
GANGS = [rule for _, rules in sorted(RIGHTS["gang"].items()) for rule in rules]


class ChartTest(unittest.TestCase):
    maxDiff = None

    def test_lint_finds_nothing(self):
        for helm in (tools.helm(), tools.helm3()):
            self.assertIn("0 chart(s) failed", tools.run(helm, "lint", "--strict", tools.CHART))

    def test_helm_3_renders_the_same(self):
        for shape, arguments in SHAPES.items():
            with self.subTest(shape):
                self.assertEqual(objects(*arguments, by=tools.helm3), objects(*arguments))

    def test_every_shape_renders_and_no_object_is_there_twice(self):
        for shape, arguments in SHAPES.items():
            with self.subTest(shape):
                items = objects(*arguments)
                keys = [(item["kind"], item["metadata"].get("namespace"), item["metadata"]["name"]) for item in items]
                self.assertEqual(len(keys), len(set(keys)), keys)
                for item in items:
                    self.assertEqual(item["metadata"]["labels"]["app.kubernetes.io/instance"], "ringmaster")

    def test_version_is_the_projects(self):
        project = re.search(r"^project\(.* VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)[1]
        chart = yaml.safe_load((tools.CHART / "Chart.yaml").read_text())
        self.assertEqual((chart["version"], chart["appVersion"]), (project, project))

    def test_it_asks_for_the_kubernetes_that_the_docs_name(self):
        oldest = re.match(r"# .*\n\nKubernetes 1\.(\d+) or newer", (ROOT / "docs/install.md").read_text())[1]
        self.assertEqual(yaml.safe_load((tools.CHART / "Chart.yaml").read_text())["kubeVersion"], f">=1.{oldest}.0-0")
        tools.template("--kube-version", f"1.{oldest}.0")
        code, text = tools.template("--kube-version", f"1.{int(oldest) - 1}.14", check=False)
        self.assertNotEqual(code, 0)
        self.assertIn("incompatible with Kubernetes", text)

    def test_every_value_is_in_the_schema_and_no_other_is_taken(self):
        code, text = tools.template("--set", "replcas=3", check=False)
        self.assertNotEqual(code, 0)
        self.assertIn("replcas", text)
        for wrong in ("replicas=-1", "logLevel=loud", "metrics.rules.noProgressFor=soon", "worker.image.repository=Bad", "watchNamespace=A_b"):
            self.assertNotEqual(tools.template("--set", wrong, check=False)[0], 0, wrong)


class CrdTest(unittest.TestCase):
    def test_definition_is_the_generated_one_and_outlives_the_release(self):
        crd = only(objects(), "CustomResourceDefinition")
        generated = yaml.safe_load(CRD.read_text())
        self.assertEqual(crd["spec"], generated["spec"])
        self.assertEqual(crd["metadata"]["name"], generated["metadata"]["name"])
        self.assertEqual(crd["metadata"]["annotations"], {"helm.sh/resource-policy": "keep"})

    def test_it_can_be_left_out_or_let_go(self):
        self.assertNotIn("CustomResourceDefinition", [item["kind"] for item in objects("--set", "crds.install=false")])
        self.assertNotIn("annotations", only(objects("--set", "crds.keep=false"), "CustomResourceDefinition")["metadata"])

    def test_packed_chart_holds_the_file_itself(self):
        import tarfile
        import tempfile
        with tempfile.TemporaryDirectory() as folder:
            tools.run(tools.helm(), "package", tools.CHART, "--destination", folder)
            package, = pathlib.Path(folder).iterdir()
            with tarfile.open(package) as archive:
                packed = archive.extractfile(f"ringmaster/files/crds/{CRD.name}").read()
        self.assertEqual(packed, CRD.read_bytes())


class DeploymentTest(unittest.TestCase):
    def pod(self, *arguments):
        return only(objects(*arguments), "Deployment")["spec"]["template"]["spec"]

    def test_pod_keeps_the_restricted_standard_and_needs_no_writable_root(self):
        pod = self.pod()
        container, = pod["containers"]
        self.assertTrue(pod["securityContext"]["runAsNonRoot"])
        self.assertGreater(pod["securityContext"]["runAsUser"], 0)
        self.assertEqual(pod["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})
        self.assertEqual(container["securityContext"], {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                                                        "capabilities": {"drop": ["ALL"]}})
        self.assertFalse({"hostNetwork", "hostPID", "hostIPC", "volumes"} & set(pod))

    def test_replicas_share_one_lease_and_workers_dial_the_service(self):
        items = objects(namespace="train")
        self.assertEqual(only(items, "Deployment")["spec"]["replicas"], 2)
        arguments = only(items, "Deployment")["spec"]["template"]["spec"]["containers"][0]["args"]
        self.assertIn("--lease-name=ringmaster", arguments)
        self.assertIn("--rendezvous-endpoint=ringmaster.train.svc:7471", arguments)
        service = only(items, "Service")
        self.assertEqual({port["name"]: port["port"] for port in service["spec"]["ports"]}, {"rendezvous": 7471, "metrics": 7470})
        labels = only(items, "Deployment")["spec"]["template"]["metadata"]["labels"]
        for selector in (service["spec"]["selector"], only(items, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
                         only(items, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"]):
            self.assertLessEqual(selector.items(), labels.items())

    def test_images_follow_registry_tag_and_digest(self):
        self.assertEqual(self.pod()["containers"][0]["image"], "ringmaster-operator:0.1.0")
        digest = "sha256:" + "0" * 64
        pod = self.pod("--set", f"registry=registry.example.com/team,image.digest={digest},worker.image.tag=v2")
        self.assertEqual(pod["containers"][0]["image"], f"registry.example.com/team/ringmaster-operator@{digest}")
        self.assertIn("--worker-image=registry.example.com/team/ringmaster-worker:v2", pod["containers"][0]["args"])


class RightsTest(unittest.TestCase):
    def test_operator_of_all_namespaces_may_do_what_is_listed_and_no_more(self):
        items = objects(namespace="train")
        self.assertEqual(only(items, "ClusterRole", "train-ringmaster")["rules"], RIGHTS["watched"] + GANGS)
        self.assertEqual(only(items, "ClusterRole", "train-ringmaster-cluster")["rules"], RIGHTS["cluster"])
        self.assertEqual(only(items, "Role", "ringmaster-shared")["rules"], RIGHTS["own"])
        roles = {item["metadata"]["name"] for item in items if item["kind"] in ("Role", "ClusterRole")}
        self.assertEqual(roles, {"train-ringmaster", "train-ringmaster-cluster", "ringmaster-shared", "train-ringmaster-view", "train-ringmaster-edit"})

    def test_operator_of_one_namespace_has_its_rights_there(self):
        items = objects("--set", "watchNamespace=team-a", namespace="train")
        self.assertEqual(only(items, "Role", "ringmaster")["rules"], RIGHTS["watched"] + GANGS)
        self.assertEqual(only(items, "Role", "ringmaster")["metadata"]["namespace"], "team-a")
        binding = only(items, "RoleBinding", "ringmaster")
        self.assertEqual(binding["metadata"]["namespace"], "team-a")
        self.assertEqual(binding["subjects"], [{"kind": "ServiceAccount", "name": "ringmaster", "namespace": "train"}])
        bound = [item["roleRef"]["name"] for item in items if item["kind"] == "ClusterRoleBinding"]
        self.assertEqual(bound, ["train-ringmaster-cluster"])

    def test_operator_has_rights_to_pod_groups_of_the_schedulers_that_it_may_use(self):
        for scheduler, expected in (("volcano", RIGHTS["gang"]["volcano"]), ("none", [])):
            items = objects("--set", f"gangScheduling.scheduler={scheduler},gangScheduling.schedulerName=ours", namespace="train")
            self.assertEqual(only(items, "ClusterRole", "train-ringmaster")["rules"], RIGHTS["watched"] + expected)
            arguments = only(items, "Deployment")["spec"]["template"]["spec"]["containers"][0]["args"]
            self.assertLessEqual({f"--gang-scheduling={scheduler}", "--gang-scheduler-name=ours"}, set(arguments))

    def test_workers_account_has_no_token_and_no_rights(self):
        items = objects("--set", "worker.serviceAccount.namespaces={team-a}")
        accounts = [item for item in items if item["kind"] == "ServiceAccount" and item["metadata"]["name"] == "ringmaster-worker"]
        self.assertEqual({account["metadata"]["namespace"] for account in accounts}, {"ringmaster-system", "team-a"})
        for account in accounts:
            self.assertIs(account["automountServiceAccountToken"], False)
        bound = [subject["name"] for item in items if item["kind"].endswith("RoleBinding") or item["kind"].endswith("ClusterRoleBinding")
                 for subject in item["subjects"]]
        self.assertNotIn("ringmaster-worker", bound)


class DashboardTest(unittest.TestCase):
    def test_config_maps_carry_the_files(self):
        items = objects(*MONITORING)
        for name in ("operator", "job"):
            config = only(items, "ConfigMap", f"ringmaster-dashboard-{name}")
            text, = config["data"].values()
            self.assertEqual(json.loads(text), json.loads((tools.CHART / f"files/dashboards/{name}.json").read_text()))
            self.assertEqual(config["metadata"]["labels"]["grafana_dashboard"], "1")


if __name__ == "__main__":
    main()
