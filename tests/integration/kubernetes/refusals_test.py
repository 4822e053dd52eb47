#!/usr/bin/env python3
"""Jobs that the definition lets pass and that cannot work all the same: what their users are told, by a real API server's own words."""
from story_test_case import FOREVER, StoryTest, digits, program  # first: it says where modules are looked for
from cluster_test_case import kubectl
from plugin_test import User
from testing import main


def has(text, words):
    return all(word in text for word in words)


class Refusal(StoryTest):
    def wait_until_said(self, kind, reason, *words):
        """Waits for a condition with this reason and these words, which may not be the first that it has for it."""
        def said():
            condition = self.condition(kind)
            return condition.get("reason") == reason and has(condition["message"], words)
        self.wait(said, lambda: f"{kind} {reason} with {words}; it is {self.condition(kind)}")

    def warnings(self, reason):
        items = self.api.get(f"/api/v1/namespaces/{self.namespace}/events")["items"]
        return [item["message"] for item in items if (item["type"], item["reason"]) == ("Warning", reason)]

    def wait_until_warned(self, reason, *words):
        self.wait(lambda: any(has(message, words) for message in self.warnings(reason)),
                  lambda: f"an event {reason} with {words}; there are {self.warnings(reason)}")

    def assert_told(self, kind, reason, *words):
        """In the condition, in an event, and by `kubectl ringmaster get`."""
        self.wait_until_said(kind, reason, *words)
        self.wait_until_warned(reason, *words)
        shown = User(self.folder, self.namespace).run("get", "story").stdout
        for word in words:
            self.assertIn(word, shown)

    def assert_over(self, *words):
        self.wait_for_state("Failed")
        self.assert_told("Failed", "InvalidSpec", *words)
        self.assertEqual(self.pods(with_deleted=True), {})

    def container(self, item):
        return item["spec"]["workers"]["template"]["spec"]["containers"][0]


class Ends(Refusal):
    """What would be refused again and again."""

    def test_template_that_makes_no_pod(self):
        item = program(FOREVER)
        self.container(item)["name"] = "Worker_A"
        self.apply(item)
        self.assert_over("spec.workers.template", "spec.containers[0].name", "RFC 1123 label")

    def test_template_that_requests_more_than_its_limit(self):
        item = program(FOREVER)
        self.container(item)["resources"] = {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}
        self.apply(item)
        self.assert_over("spec.containers[0].resources.requests", "must be less than or equal to cpu limit")

    def test_template_that_mounts_what_it_does_not_have(self):
        item = program(FOREVER)
        self.container(item)["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
        self.apply(item)
        self.assert_over("spec.containers[0].volumeMounts[0].name", 'Not found: "data"')

    def test_numbers_that_contradict_each_other(self):
        item = digits(epochs=1)
        item["spec"]["trainer"]["batch"] = {"size": 64, "shards": 65}
        self.apply(item)
        self.assert_over("spec.trainer.batch.shards: 65 is more than batch.size (64)")


class Waits(Refusal):
    """What somebody can mend: the job goes on then."""

    def wait_until_refused(self, words, *command, **options):
        """Waits until a rule is in force: the API server's own view of it lags behind what it stores."""
        said = lambda: self.kubectl(*command, "--dry-run=server", check=False, **options)  # noqa: E731
        self.wait(lambda: words in said()[1], lambda: f"{words!r}; it is {said()}")

    def test_pods_that_the_namespace_does_not_admit(self):
        item = program(FOREVER)
        self.container(item).pop("securityContext")
        self.apply(item)
        self.assert_told("PodsReady", "Forbidden", "2 of 2 pods (story-0-0, story-1-0)", 'violates PodSecurity "restricted:latest"')
        self.kubectl("label", "namespace", self.namespace, "pod-security.kubernetes.io/enforce-")
        self.wait_for_round(1, members=2)
        self.wait_until_said("PodsReady", "PodsRunning")
        self.assertEqual(self.condition("PodsReady")["message"], "2 of 2 pods run.")

    def test_pods_that_the_quota_does_not_allow(self):
        self.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"},
                    "spec": {"hard": {"pods": "1", "count/configmaps": "0"}}})
        self.wait_until_refused("exceeded quota: few", "create", "configmap", "probe")
        self.apply(program(FOREVER))
        self.assert_told("PodsReady", "Forbidden", "1 of 2 pods", "exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1")
        self.kubectl("patch", "resourcequota", "few", "--type=merge", "-p", '{"spec": {"hard": {"pods": "2"}}}')
        self.wait_for_round(1, members=2)

    def test_status_that_a_policy_does_not_allow(self):
        """It is not the job's fault, and cannot be said in its status."""
        self.apply(program(FOREVER, name="probe", managedBy="example.com/nobody"))
        freeze = self.forbid("training.ringmaster.dev", ["trainingjobs/status"], "UPDATE", "statuses are frozen")
        self.wait_until_refused("statuses are frozen", "patch", "tj", "probe", "--subresource=status", "--type=merge", "-p", '{"status": {"round": 1}}')
        self.apply(program(FOREVER))
        self.wait_until_warned("StatusRefused", "The API server refuses the job's status: ", "statuses are frozen")
        self.assertEqual((self.status(), self.pods(with_deleted=True)), ({}, {}))
        kubectl("delete", *freeze)
        self.wait_for_round(1, members=2)

    def test_pods_that_a_policy_does_not_allow(self):
        """The API server answers as if the pod were invalid; but it is not the template's fault."""
        closed = self.forbid("", ["pods", "configmaps"], "CREATE", "no pods today")
        self.wait_until_refused("no pods today", "create", "configmap", "probe")
        self.apply(program(FOREVER))
        self.assert_told("PodsReady", "Forbidden", "2 of 2 pods (story-0-0, story-1-0)", "no pods today")
        kubectl("delete", *closed)
        self.wait_for_round(1, members=2)

    def forbid(self, group, resources, operation, words):
        """A policy that refuses the operation in this namespace; returns the names of its parts."""
        name = f"{self.namespace}-closed"
        rule = {"apiGroups": [group], "apiVersions": ["*"], "operations": [operation], "resources": resources}
        parts = {"ValidatingAdmissionPolicy": {
            "matchConstraints": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self.namespace}}, "resourceRules": [rule]},
            "validations": [{"expression": "false", "message": words}]},
            "ValidatingAdmissionPolicyBinding": {"policyName": name, "validationActions": ["Deny"]}}
        for kind, spec in parts.items():
            self.apply({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec})
            self.addCleanup(kubectl, "delete", kind, name, "--ignore-not-found", "--wait=false")
        return [f"{kind}/{name}" for kind in parts]

    def test_priority_class_that_does_not_exist(self):
        item = program(FOREVER)
        item["spec"]["workers"]["template"]["spec"]["priorityClassName"] = "gold"
        self.apply(item)
        self.assert_told("PodsReady", "Forbidden", "no PriorityClass with name gold was found")

    def test_volume_that_does_not_exist(self):
        item = program(FOREVER)
        item["spec"]["workers"]["template"]["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
        self.apply(item)
        self.assert_told("PodsReady", "Unschedulable", 'persistentvolumeclaim "data" not found')

    def test_names_that_somebody_else_has(self):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "story-1-0"}, "spec": program(FOREVER)["spec"]["workers"]["template"]["spec"]}
        self.apply(pod)
        self.apply(program(FOREVER))
        self.assert_told("PodsReady", "NameTaken", "1 of 2 pods (story-1-0)", "exists already and belongs to something else")
        self.kubectl("delete", "pod", "story-1-0", "--force", "--grace-period=0")
        self.wait_for_round(1, members=2)


if __name__ == "__main__":
    main()
