#!/usr/bin/env python3
"""Workers that start together or not at all, on a cluster whose scheduler can do that.

The cluster is for these tests alone (tests/cluster/CMakeLists.txt). It has room for three workers; jobs have two.
"""
import json
import re
import unittest

from cluster_test_case import kubectl, wait_until_established  # first: it says where modules are looked for
from outage_test_case import DiesAfterEachWrite, resource_of
from story_test_case import FOREVER, PATIENT, StoryTest, program
from testing import main

MORE_THAN_HALF_A_NODE = {"requests": {"cpu": "40"}}  # kwok's have 64


class GangTest(StoryTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        served, _ = kubectl("get", "--raw", "/apis/scheduling.k8s.io/v1alpha2", check=False)
        nodes = kubectl("get", "nodes", "-l", "type=kwok", "-o", "name").split()
        if served != 0 or len(nodes) != 3:
            raise unittest.SkipTest("this cluster is not as tests/cluster/CMakeLists.txt makes it for these tests")

    def setUp(self):
        super().setUp()
        self.addCleanup(self.vacate)

    def vacate(self):
        """Gives the nodes back while there is a kubelet that does."""
        self.kubectl("delete", "tj", "--all", "--wait=false")
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        self.wait(lambda: not self.api.get(path)["items"], "the end of the pods")

    def until_released(self, name):
        """A job whose workers run until `release(name)`."""
        item = program(["sh", "-c", f"while [ ! -e {name}.done ]; do sleep 0.1; done"], name=name)
        item["spec"]["workers"]["template"]["spec"]["containers"][0]["resources"] = MORE_THAN_HALF_A_NODE
        return item

    def release(self, name):
        (self.folder / f"{name}.done").touch()

    def nodes(self, name):
        """Where the job's pods have been placed; "" for a pod that has not."""
        return [pod["spec"].get("nodeName", "") for pod in self.pods(name).values()]

    def refused(self, name):
        """How many of the job's pods the scheduler has tried to place in vain."""
        conditions = [condition for pod in self.pods(name).values() for condition in pod["status"].get("conditions", [])]
        return sum(condition["type"] == "PodScheduled" and condition["status"] == "False" for condition in conditions)

    def groups(self, api="scheduling.k8s.io/v1alpha2"):
        items = self.api.get(f"/apis/{api}/namespaces/{self.namespace}/podgroups")["items"]
        return {item["metadata"]["name"]: item for item in items if not item["metadata"].get("deletionTimestamp")}


class Native(GangTest):
    def test_of_two_jobs_that_fit_one_at_a_time_the_second_waits_whole_and_then_runs(self):
        self.apply(self.until_released("first"))
        self.wait_for_round(1, members=2, name="first")
        self.apply(self.until_released("second"))
        self.wait(lambda: self.refused("second") == 2, lambda: f"the scheduler to try both: {self.pods('second')}")
        # What the scheduler says of each pod varies from try to try.
        self.wait(lambda: re.match("The gang of 2 waits. .*(Insufficient cpu|unschedulable)", self.condition("PodsReady", "second").get("message", "")),
                  lambda: f"why it waits; said: {self.condition('PodsReady', 'second')}")
        self.assertEqual(self.nodes("second"), ["", ""])
        self.assertEqual(self.status("second")["state"], "Pending")
        self.assertEqual(self.status("first")["state"], "Running")
        self.release("first")
        self.wait_for_state("Succeeded", "first")
        self.wait_for_round(1, members=2, name="second")
        self.release("second")
        self.wait_for_state("Succeeded", "second")
        self.wait(lambda: not self.groups(), lambda: f"the end of {list(self.groups())}")

    def test_workers_that_are_no_gang_hold_what_they_get(self):
        self.apply(self.until_released("first"))
        self.wait_for_round(1, members=2, name="first")
        alone = self.until_released("second")
        alone["spec"]["scheduling"] = {"gang": False}
        self.apply(alone)
        self.wait(lambda: self.refused("second") == 1, "the scheduler to find no place for one")
        self.assertEqual(sorted(map(bool, self.nodes("second"))), [False, True])
        self.assertEqual(list(self.groups()), ["first-gang-0"])

    def test_replaced_worker_joins_the_gang_and_a_resumed_job_is_a_new_one(self):
        self.apply(self.until_released("story"))
        self.wait_for_round(1, members=2)
        self.kubectl("delete", "pod", "story-1-0", "--wait=false")
        self.wait_for_round(2, members=2)
        joined = {name: pod["spec"]["schedulingGroup"]["podGroupName"] for name, pod in self.pods().items()}
        self.assertEqual(joined, {"story-0-0": "story-gang-0", "story-1-1": "story-gang-0"})
        self.kubectl("patch", "tj", "story", "--type=merge", "-p", '{"spec": {"suspend": true}}')
        self.wait_for_condition("Suspended")
        self.wait(lambda: not self.groups(), lambda: f"the end of {list(self.groups())}")
        self.kubectl("patch", "tj", "story", "--type=merge", "-p", '{"spec": {"suspend": false}}')
        self.wait_for_round(3, members=2)
        self.assertEqual(list(self.groups()), ["story-gang-1"])
        self.kubectl("delete", "tj", "story", "--timeout=60s")
        self.wait(lambda: not self.groups(), lambda: f"the end of {list(self.groups())}")


class DeathsWithGangs(DiesAfterEachWrite, GangTest):
    """Of the statuses, only those of another state or round: the groups are what is new here, and each death takes time."""

    def point(self, method, path, body):
        step = super().point(method, path, body)
        if step is None or resource_of(path) != "trainingjobs/status":
            return step
        status = json.loads(body)["status"]
        return path.split("?")[0], status.get("state"), status.get("round")

    def until_placed(self, places, name):
        self.until(lambda: [bool(node) for node in self.nodes(name)] == places, lambda: f"{name} to be placed: {places}; it is at {self.nodes(name)}")

    def test_two_jobs_that_fit_one_at_a_time_and_each_wait_for_the_other(self):
        self.apply(self.until_released("story"))
        self.until_running(members=2)
        self.kubectl("delete", "pod", "story-1-0", "--wait=false")
        self.until_running(members=2, round_=2)
        self.apply(self.until_released("second"))
        self.until(lambda: self.refused("second") == 2, lambda: f"the scheduler to try both: {self.pods('second')}")
        self.until_placed([False, False], "second")
        self.suspend(True)
        self.until_running(members=2, name="second")
        self.until(lambda: list(self.groups()) == ["second-gang-0"], lambda: f"the end of the first gang; there are {list(self.groups())}")
        self.suspend(False)
        self.until_placed([False, False], "story")
        self.release("second")
        self.until_ended("Succeeded", "second")
        self.until_running(members=2, round_=3)
        self.until(lambda: list(self.groups()) == ["story-gang-1"], lambda: f"the end of the second's; there are {list(self.groups())}")
        self.assertEqual(sorted(self.created("podgroups")), ["second-gang-0", "story-gang-0", "story-gang-1"])
        self.assertEqual((len(self.created("pods", of="second")), len(self.created("pods", of="story"))), (2, 5), self.created("pods"))
        self.assertEqual((self.status()["restarts"]["byCause"], self.restarts("second")), ({"Preemption": 1}, 0))
        self.assert_died_after("POST secrets", "PATCH trainingjobs/status", "POST services", "POST podgroups", "POST pods", "DELETE pods",
                               "DELETE services", "DELETE podgroups")


class NoRights(GangTest):
    def rights(self):
        return {**super().rights(), "gang": {}}

    def test_operator_that_may_not_make_groups_runs_jobs_without(self):
        self.apply(self.until_released("story"))
        self.wait_for_round(1, members=2)
        self.assertEqual(self.groups(), {})
        self.assertIn("gang scheduler not used: no rights", self.operator.log.read_text(encoding="utf-8"))


def definition(group, version):
    """What the tests below need of another scheduler's PodGroup: the fields that the operator sets, and no others."""
    spec = {"type": "object", "required": ["minMember"], "properties": {
        "minMember": {"type": "integer", "minimum": 1}, "queue": {"type": "string"}, "priorityClassName": {"type": "string"}}}
    schema = {"type": "object", "properties": {"spec": spec, "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"podgroups.{group}", "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"}},
            "spec": {"group": group, "scope": "Namespaced", "names": {"kind": "PodGroup", "plural": "podgroups"},
                     "versions": [{"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]}}


class Other:
    """Schedulers that are not there: what the operator makes for them, which the API server takes."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        kubectl("apply", "-f", "-", stdin=json.dumps(definition(cls.group, cls.version)))
        cls.addClassCleanup(kubectl, "delete", "crd", f"podgroups.{cls.group}")
        wait_until_established("crd", f"podgroups.{cls.group}")
        cls.operator_flags = (*PATIENT, f"--gang-scheduling={cls.name}")

    def members(self):
        return {name: group["spec"]["minMember"] for name, group in self.groups(f"{self.group}/{self.version}").items()}

    def play(self, **scheduling):
        item = program(FOREVER, scheduling=scheduling)
        self.apply(item)
        self.wait(lambda: len(self.pods()) == 2, "the pods")
        self.assertEqual({pod["spec"]["schedulerName"] for pod in self.pods().values()}, {self.scheduler})
        self.assertEqual(self.members(), {"story-gang-0": 2})
        self.kubectl("scale", "tj", "story", "--replicas=3")
        self.wait(lambda: self.members() == {"story-gang-0": 3}, lambda: f"the group to grow; there are {self.members()}")
        return self.groups(f"{self.group}/{self.version}")["story-gang-0"], self.wait(lambda: self.pods().get("story-2-0"), "the third pod")


class Volcano(Other, GangTest):
    name, group, version, scheduler = "volcano", "scheduling.volcano.sh", "v1beta1", "volcano"

    def test_group_has_the_jobs_queue_and_pods_name_it(self):
        group, pod = self.play(queue="research")
        self.assertEqual(group["spec"]["queue"], "research")
        self.assertEqual(pod["metadata"]["annotations"]["scheduling.volcano.sh/group-name"], "story-gang-0")


class Coscheduling(Other, GangTest):
    name, group, version, scheduler = "coscheduling", "scheduling.x-k8s.io", "v1alpha1", "scheduler-plugins-scheduler"

    def test_group_grows_with_the_job_and_pods_name_it(self):
        _, pod = self.play()
        self.assertEqual(pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"], "story-gang-0")


if __name__ == "__main__":
    main()
