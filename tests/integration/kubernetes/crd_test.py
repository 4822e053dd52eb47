#!/usr/bin/env python3
"""The CustomResourceDefinition of crds/ in a real API server: what a user of kubectl sees and what is refused."""
import json

from cluster_test_case import CRD, ROOT, ClusterTest, job, kubectl, main

COMMAND = {"spec": {"containers": [{"name": "worker", "image": "x", "command": ["true"]}]}}
ONCE_SET = "cannot change once it is set; delete the job, or give the new one another name"

# What is wrong: (changes to a good job, the field, words of the message).
REFUSED = {
    "upper case in the name": ({"metadata.name": "Digits"}, "metadata.name", "lower-case"),
    "a name that starts with a digit": ({"metadata.name": "1digits"}, "metadata.name", "start with a letter"),
    "a name that ends with a dash": ({"metadata.name": "digits-"}, "metadata.name", "letter or digit"),
    "a name too long for its pods": ({"metadata.name": "d" * 49}, "metadata.name", "at most 48 characters"),
    "a name longer than a label": ({"metadata.name": "d" * 64}, "metadata.name", "at most 48 characters"),
    "negative replicas": ({"spec.workers.replicas": -1}, "spec.workers.replicas", "greater than or equal to"),
    "negative minReplicas": ({"spec.workers.minReplicas": -1}, "spec.workers.minReplicas", "greater than or equal to"),
    "replicas that are no number": ({"spec.workers.replicas": "two"}, "spec.workers.replicas", "integer"),
    "min more than max": ({"spec.workers.minReplicas": 5, "spec.workers.replicas": 5}, "spec.workers.minReplicas",
                          "5 is more than maxReplicas (4); lower it or raise maxReplicas"),
    "min more than replicas": ({"spec.workers.minReplicas": 3}, "spec.workers.minReplicas",
                               "3 is more than replicas (2); lower it or raise replicas"),
    "replicas more than max": ({"spec.workers.replicas": 5}, "spec.workers.replicas", "5 is more than maxReplicas (4)"),
    "neither trainer nor command": ({"spec.trainer": None}, "spec", "give spec.trainer for the native runtime"),
    "both trainer and command": ({"spec.workers.template": COMMAND}, "spec", "set exactly one of trainer"),
    "no spec": ({"spec": None}, "spec", "Required value"),
    "an unknown policy": ({"spec.cleanPodPolicy": "Sometimes"}, "spec.cleanPodPolicy", '"Running", "All", "None"'),
    "two optimizers": ({"spec.trainer.optimizer.adam": {"learningRate": 0.1}}, "spec.trainer.optimizer", "set exactly one of sgd, adam"),
    "no optimizer": ({"spec.trainer.optimizer": {}}, "spec.trainer.optimizer", "set exactly one of sgd, adam"),
    "no length": ({"spec.trainer.epochs": None}, "spec.trainer", "say how long to train"),
    "two lengths": ({"spec.trainer.steps": 5}, "spec.trainer", "set at most one of epochs, steps"),
    "two homes of checkpoints": ({"spec.checkpoint": {"directory": "x", "volume": {"emptyDir": {}}}}, "spec.checkpoint",
                                 "set at most one of directory, volume"),
    "a layer of two kinds": ({"spec.trainer.model": {"sequential": {"layers": [{"relu": {}, "tanh": {}}]}}},
                             "spec.trainer.model.sequential.layers[0]", "set exactly one of conv2d"),
    "an unknown field": ({"spec.trainer.optimizer.sgd.momentun": 0.9}, "spec.trainer.optimizer.sgd.momentun", "unknown field"),
}


class Crd(ClusterTest):
    def test_explain_describes_the_fields(self):
        workers = kubectl("explain", "tj.spec.workers")
        for words in ("replicas\t<integer>", "minReplicas\t<integer>", "maxReplicas\t<integer>", "template\t<Object>"):
            self.assertIn(words, workers)
        self.assertIn("passed on as it is", workers)
        self.assertIn("Number of classes", kubectl("explain", "trainingjob.spec.trainer.data.csv.classes"))

    def test_it_is_structural_and_established(self):
        conditions = json.loads(kubectl("get", "-o", "json", "-f", str(CRD)))["status"]["conditions"]
        states = {item["type"]: item["status"] for item in conditions}
        self.assertEqual((states.get("Established"), states.get("NonStructuralSchema")), ("True", None), conditions)

    def test_installing_it_again_changes_nothing(self):
        before = json.loads(kubectl("get", "-o", "json", "-f", str(CRD)))["metadata"]["generation"]
        kubectl("apply", "--server-side", "--force-conflicts", "-f", str(CRD))
        self.assertEqual(json.loads(kubectl("get", "-o", "json", "-f", str(CRD)))["metadata"]["generation"], before)

    def test_get_shows_the_columns_of_a_running_job(self):
        self.apply(job())
        self.patch_status("tj", "digits", {"state": "Running", "workers": {"summary": "2/2"}, "restarts": {"total": 3},
                                           "progress": {"summary": "12/450", "loss": 0.25}})
        header, row = self.kubectl("get", "tj").splitlines()
        self.assertEqual(header.split(), ["NAME", "STATE", "WORKERS", "STEP", "LOSS", "RESTARTS", "AGE"])
        self.assertEqual(row.split()[:6], ["digits", "Running", "2/2", "12/450", "0.25", "3"])

    def test_get_all_lists_jobs(self):
        self.apply(job())
        self.assertIn("trainingjob.training.ringmaster.dev/digits", self.kubectl("get", "all"))

    def test_each_mistake_is_refused_with_its_field_and_what_to_do(self):
        for name, (changes, field, words) in REFUSED.items():
            with self.subTest(name):
                text = self.refusal(job(changes))
                self.assertIn(field, text)
                self.assertIn(words, text)

    def test_all_mistakes_are_said_at_once(self):
        text = self.refusal(job({"spec.workers.minReplicas": 3, "spec.trainer.optimizer": {}, "spec.trainer.epochs": None}))
        for field in ("spec.workers.minReplicas", "spec.trainer.optimizer", "spec.trainer"):
            self.assertIn(field, text)

    def test_what_is_fixed_for_a_job_cannot_change(self):
        self.apply(job({"spec.managedBy": "example.com/other"}))
        for field, changes in (("spec.managedBy", {"spec.managedBy": "ringmaster.dev/operator"}), ("spec.trainer", {"spec.trainer.batch.size": 32}),
                               ("spec.trainer", {"spec.trainer.seed": 9}), ("spec.trainer", {"spec.trainer.model.zoo.dropout": 0.5})):
            with self.subTest(changes):
                text = self.refusal(job({"spec.managedBy": "example.com/other", **changes}))
                self.assertIn(field, text)
                self.assertIn(ONCE_SET, text)

    def test_defaults_are_filled_in(self):
        self.apply(job())
        spec = self.get("tj", "digits")["spec"]
        expected = {"cleanPodPolicy": "Running", "managedBy": "ringmaster.dev/operator", "successPolicy": "AllWorkers", "suspend": False}
        self.assertEqual({name: spec.get(name) for name in expected}, expected)
        self.assertEqual(spec["checkpoint"], {"everySeconds": 60, "everySteps": 0, "keep": 3})
        self.assertEqual(spec["restart"]["code"], 6)
        self.assertEqual(spec["trainer"]["data"]["csv"]["holdOutEvery"], 5)

    def test_pod_template_is_kept_whole(self):
        template = {"metadata": {"labels": {"team": "a"}}, "spec": {"containers": [{
            "name": "worker", "command": ["true"], "resources": {"limits": {"example.com/gpu": "1"}}, "a-field-of-tomorrow": {"b": [1]}}]}}
        self.apply(job({"spec.trainer": None, "spec.workers.template": template}))
        self.assertEqual(self.get("tj", "digits")["spec"]["workers"]["template"], template)

    def test_examples_are_accepted(self):
        manifests = sorted(ROOT.glob("examples/*/job*.yaml"))
        self.assertGreater(len(manifests), 2)
        for manifest in manifests:
            with self.subTest(manifest.name):
                self.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", str(manifest))

    def test_scale_changes_the_workers_within_the_rules(self):
        self.apply(job())
        self.kubectl("scale", "tj/digits", "--replicas=3")
        self.assertEqual(self.get("tj", "digits")["spec"]["workers"]["replicas"], 3)
        code, text = self.kubectl("scale", "tj/digits", "--replicas=5", check=False)
        self.assertNotEqual(code, 0)
        self.assertIn("5 is more than maxReplicas (4)", text)

    def test_scale_subresource_carries_what_an_autoscaler_needs(self):
        self.apply(job())
        self.patch_status("tj", "digits", {"selector": "training.ringmaster.dev/job=digits", "workers": {"active": 2}})
        path = f"/apis/training.ringmaster.dev/v1alpha1/namespaces/{self.namespace}/trainingjobs/digits/scale"
        scale = json.loads(kubectl("get", "--raw", path))
        self.assertEqual(scale["spec"]["replicas"], 2)
        self.assertEqual(scale["status"], {"replicas": 2, "selector": "training.ringmaster.dev/job=digits"})

    def test_status_is_written_through_its_subresource_only(self):
        self.apply({**job(), "status": {"state": "Running"}})
        self.assertNotIn("state", self.get("tj", "digits").get("status", {}))
        generation = self.get("tj", "digits")["metadata"]["generation"]
        self.patch_status("tj", "digits", {"state": "Running"})
        after = self.get("tj", "digits")
        self.assertEqual((after["status"]["state"], after["metadata"]["generation"]), ("Running", generation))

    def test_conditions_are_merged_by_type(self):
        self.apply(job())
        for manager, kind in (("a", "PodsReady"), ("b", "Suspended")):
            condition = {"type": kind, "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"}
            item = {**{key: job()[key] for key in ("apiVersion", "kind", "metadata")}, "status": {"conditions": [condition]}}
            self.apply(item, "--server-side", "--subresource=status", f"--field-manager={manager}", "--validate=ignore")
        kinds = [item["type"] for item in self.get("tj", "digits")["status"]["conditions"]]
        self.assertEqual(sorted(kinds), ["PodsReady", "Suspended"])


if __name__ == "__main__":
    main()
