#!/usr/bin/env python3
"""The chart's budget for operators: a drain takes them one after another, the other leads meanwhile, and no job notices."""
import json
import os
import sys

import yaml

import tools
from testing import ROOT, main, wait_until

sys.path.insert(0, str(ROOT / "tests/integration/kubernetes"))
from cluster_test_case import LOOK, job  # noqa: E402
from kube_api import KubeApi  # noqa: E402
from operator_process import OperatorTest  # noqa: E402


class BudgetTest(OperatorTest):
    """The Deployment's pods are left to the test, which is their kubelet: it runs an operator for each."""

    def setUp(self):
        super().setUp()
        self.api = KubeApi(os.environ["RINGMASTER_TEST_KUBECONFIG"])
        self.addCleanup(self.api.close)
        self.operators = {}  # by pod

    def install(self):
        rendered = tools.template("--set-string", r"podAnnotations.test\.ringmaster\.dev/kubelet=by-hand", namespace=self.namespace)
        for item in yaml.safe_load_all(rendered):
            if item and item["kind"] in ("ServiceAccount", "Deployment", "PodDisruptionBudget"):
                self.apply(item)

    def replicas(self):
        """Names of the Deployment's pods that are not going."""
        items = json.loads(self.kubectl("get", "pods", "-l", "app.kubernetes.io/component=operator", "-o", "json"))["items"]
        return {item["metadata"]["name"] for item in items if "deletionTimestamp" not in item["metadata"]}

    def wait_for_new(self):
        """The name of the one pod that has no operator yet."""
        def there():
            names = self.replicas()
            return names - set(self.operators) if len(names) == 2 else None
        name, = wait_until(there, "a pod instead of the one that went", between=LOOK)
        return name

    def report(self, pod, ready):
        now = "2026-01-01T00:00:00Z"
        self.patch_status("pod", pod, {"phase": "Running", "conditions": [
            {"type": kind, "status": str(ready), "lastTransitionTime": now} for kind in ("ContainersReady", "Ready")]})

    def run_operator(self, pod):
        self.operators[pod] = self.start_operator(pod)
        self.operators[pod].wait_until_ready()
        self.report(pod, ready=True)

    def end(self, pod):
        """What a kubelet does with a pod that is on its way out."""
        if pod in self.operators:
            self.assertEqual(self.operators[pod].end(), 0)
        self.kubectl("delete", "pod", pod, "--force", "--grace-period=0")

    def wait_for_allowed(self, disruptions):
        def status():
            return self.get("pdb", "ringmaster").get("status", {})
        wait_until(lambda: status().get("disruptionsAllowed") == disruptions and not status().get("disruptedPods"),
                   lambda: f"{disruptions} to be allowed: {status()}", between=LOOK)

    def wait_for_healthy(self, pods):
        """Until the budget's controller has counted the pod that went."""
        def healthy():
            return self.get("pdb", "ringmaster")["status"].get("currentHealthy")
        wait_until(lambda: healthy() == pods, lambda: f"{pods} healthy pods: {healthy()}", between=LOOK)

    def assert_refused(self, pod):
        refused = self.api.evict(self.namespace, pod)
        self.assertIsNotNone(refused, f"{pod} was evicted")
        self.assertEqual(refused.status, 429)
        self.assertIn("disruption budget ringmaster needs 1 healthy pods and has 1 currently", str(refused))
        self.assertIn(pod, self.replicas())

    def test_operators_are_drained_one_by_one_and_a_job_is_led_on(self):
        self.install()
        first, second = wait_until(lambda: (lambda names: sorted(names) if len(names) == 2 else None)(self.replicas()), "two pods", between=LOOK)
        self.run_operator(first)
        self.operators[first].wait_until_it_leads()
        self.run_operator(second)
        self.apply(job())
        pods = self.wait_for_pods("digits-0-0", "digits-1-0")
        self.wait_for_allowed(1)

        self.assertIsNone(self.api.evict(self.namespace, first))
        third = self.wait_for_new()
        self.wait_for_healthy(1)
        self.assert_refused(second)  # the third does not run yet
        self.end(first)
        self.operators[second].wait_until_it_leads()
        self.assert_refused(second)
        self.run_operator(third)
        self.wait_for_allowed(1)

        self.assertIsNone(self.api.evict(self.namespace, second))
        fourth = self.wait_for_new()
        self.end(second)
        self.operators[third].wait_until_it_leads()
        # One that runs but never gets ready does not hold up a drain, although no more may go.
        self.report(fourth, ready=False)
        self.assert_refused(third)
        self.assertIsNone(self.api.evict(self.namespace, fourth))
        self.end(fourth)

        self.kubectl("scale", "tj/digits", "--replicas=3")
        after = self.wait_for_pods("digits-0-0", "digits-1-0", "digits-2-0")
        for name, pod in pods.items():
            self.assertEqual(after[name]["metadata"]["uid"], pod["metadata"]["uid"])


if __name__ == "__main__":
    main()
