#!/usr/bin/env python3
"""The operator dies after each of its writes: what users rely on (stories_test.py) comes true all the same, and nothing is made twice.

A run has all the crash points of its story, so these take little longer than the stories themselves; `assert_died_after` holds each to every kind
of write that it is to contain. Losses, evictions, budgets, deadlines: outages_test.py. A gang: gang_test.py.
"""
import json
import os
import signal

from outage_test_case import DiesAfterEachWrite, resource_of
from story_test_case import ENDLESS, FOREVER, digits, is_gone, program
from testing import free_port, main

BEGIN = ("POST secrets", "PATCH trainingjobs/status", "POST pods")  # of every job
WITH_SERVICE = (*BEGIN, "POST services")  # the trainer has no use for one


class DeathsWithPrograms(DiesAfterEachWrite):
    def test_an_interruption_and_a_failure_whose_words_are_kept_until_the_job_goes(self):
        script = """case $RINGMASTER_POD_NAME in
            story-1-0) exit 130;;
            story-1-1) echo "shapes differ in step 7"; exit 1;;
            esac; exec sleep 1000"""
        self.apply(program(["sh", "-c", script], restart={"code": 0}, ttlSecondsAfterFinished=3600))
        self.until_ended("Failed")
        failed = self.condition("Failed")
        self.assertEqual(failed["reason"], "RestartBudgetExhausted")
        for words in ("Worker 1", "exit code 1", "shapes differ in step 7"):
            self.assertIn(words, failed["message"])
        self.assertEqual(self.status()["restarts"]["byCause"].get("Preemption"), 1)
        self.assertEqual((sorted(self.created("pods")), self.created("services")), (["story-0-0", "story-1-0", "story-1-1"], ["story"]))
        self.until(lambda: not self.services(), "the end of the service, which an operator that lives again would leave to the job's")
        self.expire()
        self.until(lambda: self.job() is None, "the end of the job")
        self.until_pods()
        self.assert_died_after(*WITH_SERVICE, "DELETE pods", "DELETE services", "DELETE trainingjobs")

    def test_ends_after_which_some_pods_are_left_or_all(self):
        leader_ends = ["sh", "-c", "case $RINGMASTER_POD_NAME in *-0-?) exit 0;; esac; exec sleep 1000"]
        left = {"Running": ["running-0-0"], "None": ["none-0-0", "none-1-0"]}
        for policy in left:
            self.apply(program(leader_ends, name=policy.lower(), successPolicy="WorkerZero", cleanPodPolicy=policy))
        for policy, pods in left.items():
            name = policy.lower()
            self.until_ended("Succeeded", name)
            self.until(lambda name=name, pods=pods: sorted(self.pods(name, with_deleted=True)) == pods, f"the pods {pods} to be left")
            self.assertEqual(sorted(self.created("pods", of=name)), [f"{name}-0-0", f"{name}-1-0"])
        self.until(lambda: self.kubelet.ended("none-1-0"), "the end of the other worker, which is told so")
        self.assertEqual(self.restarts("running") + self.restarts("none"), 0)
        self.assert_died_after(*WITH_SERVICE, "DELETE pods", "DELETE services")

    def test_a_malformed_command(self):
        self.apply(program(["no-such-program"], workers=1, restart={"code": 1, "unknown": 1}))
        self.until_ended("Failed")
        self.assertIn("no-such-program", self.condition("Failed")["message"])
        self.assertEqual(self.created("pods"), ["story-0-0", "story-0-1"])
        self.assert_died_after(*WITH_SERVICE, "DELETE pods")

    def test_an_image_that_comes_late_and_a_service_deleted_by_hand(self):
        words = 'Back-off pulling image "nowhere/none:1"'
        self.kubelet.withhold("nowhere/none:1", "ImagePullBackOff", words)
        self.apply(program(FOREVER, image="nowhere/none:1"))
        self.until(lambda: words in self.condition("PodsReady").get("message", ""), lambda: f"the words; said: {self.condition('PodsReady')}")
        self.until(lambda: self.services() == ["story"], "the service, which is made after the pods, by an operator that lives again")
        self.kubectl("delete", "service", "story")
        self.until(lambda: self.services() == ["story"], "the service to come back")
        self.kubelet.provide("nowhere/none:1")
        self.until_running(members=2)
        self.assertEqual((sorted(self.created("pods")), self.created("services")), (["story-0-0", "story-1-0"], ["story", "story"]))
        self.assertEqual((self.restarts(), self.status()["round"]), (0, 1))
        self.assert_died_after(*WITH_SERVICE)


class DeathsWithTheTrainer(DiesAfterEachWrite):
    def test_a_suspension_after_which_it_goes_on_from_its_checkpoint(self):
        self.apply(digits(epochs=ENDLESS))
        self.until_step(20)
        first = self.status()["startTime"]
        self.suspend(True)
        self.until_suspended()
        saved = self.status()["progress"]["lastCheckpointStep"]
        self.assertGreaterEqual(saved, 20)
        self.suspend(False)
        self.until_running(members=2, round_=2)
        self.assertEqual(self.condition("Suspended")["status"], "False")
        self.assertGreater(self.status()["startTime"], first)
        self.assertIn(f"from the checkpoint of step {saved}", self.condition("Training")["message"])
        self.until_step(saved + 1)
        self.assertEqual((self.restarts(), self.status()["round"], len(set(self.created("pods"))), len(self.created("pods"))), (0, 2, 4, 4))
        self.assert_died_after(*BEGIN, "DELETE pods")

    def test_a_worker_too_many_that_leaves_after_a_checkpoint(self):
        self.apply(digits(epochs=ENDLESS, workers=3))
        self.until_step(15)
        self.kubectl("scale", "tj/story", "--replicas=2")
        self.until_running(members=2, round_=2)
        self.until_pods("story-0-0", "story-1-0")
        self.until(lambda: self.status()["progress"]["step"] > self.status()["checkpoints"][-1]["step"] > 0, "the others to go on")
        self.assertEqual((self.restarts(), self.status()["round"], sorted(self.created("pods"))), (0, 2, ["story-0-0", "story-1-0", "story-2-0"]))
        self.assertEqual(self.status().get("lostSeconds", {}).get("replay", 0), 0, "steps were done twice")
        self.assert_died_after(*BEGIN, "DELETE pods")

    def test_a_node_that_is_cut_off_and_comes_back(self):
        self.apply(digits(epochs=ENDLESS))
        self.until_step(20)
        launcher = self.kubelet.pid("story-1-0")
        self.kubelet.cut_off("story-1-0")
        os.kill(launcher, signal.SIGSTOP)
        self.until_running(members=2, round_=2)
        self.assertNotIn("story-1-0", {member["pod"] for member in self.status()["members"]})
        self.assertIn("story-1-0", self.pods(with_deleted=True))  # nobody there removes it
        step = self.status()["progress"]["step"]
        os.kill(launcher, signal.SIGCONT)  # the network is back, the worker is of an old round
        self.until(lambda: is_gone(launcher), "the fenced launcher to leave")
        self.until_step(step + 20)
        self.assertEqual((self.restarts(), self.status()["round"], sorted(self.created("pods"))), (1, 2, ["story-0-0", "story-1-0", "story-1-1"]))
        self.assert_died_after(*BEGIN, "DELETE pods")


class DeathsOfAnOldOperator(DiesAfterEachWrite):
    """One that has seen all that went before dies three times: when it has written down a loss, made a third worker's pod, and deleted that again."""

    def point(self, method, path, body):
        content = json.loads(body or b"{}")
        if "restarts" in content.get("status", {}):
            return "a loss"
        is_third = content.get("metadata", {}).get("name") == "story-2-0" or path.split("?")[0].endswith("/story-2-0")
        return method if resource_of(path) == "pods" and is_third else None

    def test_a_loss_a_third_worker_and_a_suspension(self):
        self.apply(program(FOREVER))
        self.until_running(members=2)
        self.kubelet.kill("story-1-0")
        self.until_running(members=2, round_=2)
        self.kubectl("scale", "tj/story", "--replicas=3")
        self.until_running(members=3, round_=3)
        self.suspend(True)
        self.until_suspended()
        self.assertEqual((self.restarts(), self.status()["round"]), (1, 3))
        self.assertEqual((sorted(self.created("pods")), self.created("services")), (["story-0-0", "story-1-0", "story-1-1", "story-2-0"], ["story"]))
        self.assert_died_after("PATCH trainingjobs/status", "POST pods", "DELETE pods")


class DeathsOfLeaders(DiesAfterEachWrite):
    """Of two operators the one that leads dies after each kind of write, those of the election too, and the other goes on with its work.

    Not after each write, for each death costs the rest of a lease. That is short: whoever loses it on a busy machine ends, and is started
    again like one that was killed.
    """
    operator_flags = ("--lease-duration=4", "--renew-deadline=3", "--retry-period=0.5")

    def setUp(self):
        self.ports = {pod: free_port(self.address) for pod in ("operator-0", "operator-1")}
        self.leaders = []  # as they followed each other; each start is another
        super().setUp()
        self.start_operator("operator-1")

    def start_operator(self, pod="operator-0", arguments=()):
        self.rendezvous_port = self.ports[pod]
        endpoint = ",".join(f"{self.address}:{port}" for port in self.ports.values())
        return super().start_operator(pod, (f"--rendezvous-endpoint={endpoint}", *arguments))

    def point(self, method, path, body):
        resource = resource_of(path)
        if resource == "leases":
            holder = json.loads(body)["spec"]["holderIdentity"]  # "" where one gives it up
            if holder and holder not in self.leaders:
                self.leaders.append(holder)
                self.leader = holder.rsplit("_", 1)[0]
            return method, resource
        return (method, resource) if super().point(method, path, body) else None

    def test_a_loss_and_a_third_worker(self):
        self.apply(program(FOREVER))
        self.until_running(members=2)
        self.kubelet.kill("story-1-0")
        self.until_running(members=2, round_=2)
        self.kubectl("scale", "tj/story", "--replicas=3")
        self.until_running(members=3)
        self.until_pods("story-0-0", "story-1-1", "story-2-0")
        self.assertEqual((self.restarts(), sorted(self.created("pods"))), (1, ["story-0-0", "story-1-0", "story-1-1", "story-2-0"]))
        self.assertEqual((self.created("services"), self.created("leases"), self.created("secrets")),
                         (["story"], ["ringmaster-operator"], ["ringmaster-operator-rendezvous"]))
        self.assert_died_after(*WITH_SERVICE, "POST leases", "PUT leases", "DELETE pods")
        self.assertGreater(len(self.leaders), 4, self.leaders)


if __name__ == "__main__":
    main()
