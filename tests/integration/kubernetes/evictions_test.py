#!/usr/bin/env python3
"""A budget that a user sets for a job's workers: what would break it is refused, and what it allows costs a round, not the job."""
import json
import time

from story_test_case import FOREVER, StoryTest, program
from testing import main


class Evictions(StoryTest):
    def budget(self, name="story", **limits):
        """For the workers of the job."""
        self.apply({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": {
            **limits, "selector": {"matchLabels": {"training.ringmaster.dev/job": name}}}})

    def budget_status(self, name="story"):
        """The controller of a cluster that has just started asks every half minute which kinds there are, and looks again at a budget that
        failed for want of one only after minutes, unless the budget changes."""
        status = self.get("pdb", name).get("status", {})
        if any(condition["reason"] == "SyncFailed" for condition in status.get("conditions", [])):
            self.kubectl("annotate", "--overwrite", "pdb", name, f"looked-at={time.monotonic()}")
        return status

    def wait_for_allowed(self, disruptions, name="story"):
        """Until the controller allows as many for the pods that there are now."""
        def there():
            status = self.budget_status(name)
            return status.get("disruptionsAllowed") == disruptions and not status.get("disruptedPods")
        self.wait(there, lambda: f"{disruptions} to be allowed: {json.dumps(self.get('pdb', name).get('status'))}")

    def evict(self, pod):
        return self.api.evict(self.namespace, pod)

    def test_a_worker_at_a_time_goes_and_the_job_survives(self):
        self.apply(program(FOREVER, workers=3, restart={"code": 0, "unknown": 0, "nodeLost": 0}))
        self.budget(maxUnavailable=1)
        self.wait_for_round(1, members=3)
        self.wait_for_allowed(1)
        status = self.get("pdb", "story")["status"]
        self.assertEqual((status["expectedPods"], status["desiredHealthy"], status["currentHealthy"]), (3, 2, 3))

        self.kubelet.withhold("mine", "ContainerCreating", "")  # the next one does not start yet
        self.assertIsNone(self.evict("story-0-0"))
        self.wait(lambda: sorted(self.pods(with_deleted=True)) == ["story-0-1", "story-1-0", "story-2-0"], "the pod that replaces it")
        refused = self.evict("story-1-0")
        self.assertEqual(refused.status, 429)
        self.assertIn("Cannot evict pod as it would violate the pod's disruption budget", str(refused))
        self.assertIn("story-1-0", self.pods())

        self.kubelet.provide("mine")
        self.wait_for_round(2, members=3)
        self.wait_for_allowed(1)
        self.assertIsNone(self.evict("story-1-0"))
        status = self.wait_for_round(3, members=3)
        self.assertEqual({member["pod"] for member in status["members"]}, {"story-0-1", "story-1-1", "story-2-0"})
        self.assertEqual(status["restarts"]["byCause"], {"Preemption": 2})

    def test_none_goes_where_the_budget_asks_for_all_also_when_the_job_is_scaled(self):
        self.apply(program(FOREVER))
        self.budget(maxUnavailable=0)
        self.wait_for_round(1, members=2)
        self.kubectl("scale", "tj/story", "--replicas=3")
        self.wait_for_round(2, members=3)
        self.wait(lambda: self.budget_status().get("expectedPods") == 3, "the budget to count by the job's scale")
        for pod in sorted(self.pods()):
            self.assertEqual(self.evict(pod).status, 429)
        self.assertEqual(self.status()["round"], 2)
        self.assertEqual(self.restarts(), 0)


if __name__ == "__main__":
    main()
