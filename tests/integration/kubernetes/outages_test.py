#!/usr/bin/env python3
"""Bad days of the operator on a real API server: killed at each step, the server away, overloaded, or forgetful, two operators, a node cut off."""
import json
import os
import signal
import threading
import time

from api_proxy import is_watch
from outage_test_case import BehindAProxy, DiesAfterEachWrite, Mortal
from story_test_case import ENDLESS, FOREVER, StoryTest, digits, is_gone, program
from testing import main


class LastWords(Mortal):
    """The operator is killed when it has heard what a worker says and then leaves, and has not stored it."""

    def kill_before_it_stores(self, field):
        """The first time that the operator is about to store this field of the status. The field's values that were not stored."""
        lost = []

        def swallow(method, path, body):
            value = json.loads(body or b"{}").get("status", {}).get(field) if method == "PATCH" else None
            if value is None or lost:
                return False
            lost.append(value)
            self.kill_operator()
            return True

        self.proxy.swallow = swallow
        return lost

    def test_job_whose_end_was_heard_and_not_stored_is_not_run_again(self):
        lost = self.kill_before_it_stores("result")
        self.apply(digits(epochs=3))
        self.until_ended("Succeeded")
        self.assertEqual(len(lost), 1)
        self.assertEqual(self.starts, 1)
        self.assertEqual(self.status()["result"], lost[0])
        self.assertEqual((self.restarts(), self.status()["round"], len(self.created("pods"))), (0, 1, 2))

    def test_checkpoint_that_a_leaving_worker_wrote_is_not_lost(self):
        job = digits(epochs=ENDLESS)
        job["spec"]["checkpoint"]["everySteps"] = 1000000  # none but the one of the worker that leaves
        self.apply(job)
        self.wait_for_step(20)
        lost = self.kill_before_it_stores("checkpoints")
        self.kubectl("delete", "pod", "story-1-0", "--wait=false")
        self.until_running(members=2, round_=2)
        self.assertEqual((len(lost), self.starts), (1, 1))
        kept = self.status()["checkpoints"][-1]
        self.assertEqual((kept["step"], kept["round"], kept["digest"]), (lost[0][0]["step"], 1, lost[0][0]["digest"]))
        self.assertIn(f"from the checkpoint of step {kept['step']}", self.condition("Training")["message"])
        self.assertEqual(self.restarts(), 1)


class Unchecked(Mortal):
    """Nobody can say whose a worker's token is."""
    LONGER_THAN_SILENCE_MAY_LAST = 60

    def test_reviews_that_fail_after_a_change_of_leader_lose_nobody(self):
        self.apply(digits(epochs=ENDLESS))
        self.wait_for_step(20)
        before = self.uids()
        reviews = []

        def answer(method, path):
            if path.split("?")[0].rsplit("/", 1)[1] != "tokenreviews":
                return None
            reviews.append(path)
            return 429 if len(reviews) % 2 else 500

        self.proxy.answer = answer
        self.kill_operator()
        self.operator.process.wait(timeout=60)
        self.operator = self.start_operator()
        self.wait(lambda: reviews, "the workers to come to the next operator")
        came = time.monotonic()
        self.wait(lambda: time.monotonic() - came > self.LONGER_THAN_SILENCE_MAY_LAST, "the trouble, which is to be as long as that")
        step = self.status()["progress"]["step"]
        self.proxy.answer = lambda method, path: None
        self.wait_for_step(step + 20)
        self.assertEqual((self.uids(), self.restarts(), self.status()["round"]), (before, 0, 1))

    def uids(self):
        return {name: pod["metadata"]["uid"] for name, pod in self.pods().items()}


class Killed(DiesAfterEachWrite):
    """Programs of a user's own, which are lost, evicted, too few, too many, and end. More such stories: deaths_test.py."""
    # Until the test says so.
    UNTIL_TOLD = ["sh", "-c", "trap 'exit 143' TERM; while ! [ -e told ]; do sleep 0.1; done"]

    def test_a_loss_a_third_worker_and_a_suspension(self):
        self.apply(program(FOREVER))
        self.until_running(members=2)
        self.kubelet.kill("story-1-0")
        self.until_running(members=2, round_=2)
        self.kubectl("scale", "tj/story", "--replicas=3")
        self.until_running(members=3)
        self.suspend(True)
        self.until_suspended()
        self.assertGreater(self.starts, 10, "the operator was hardly killed")
        self.assertEqual(self.restarts(), 1)
        self.assertEqual(len(self.created("pods")), 4, self.created("pods"))
        self.assertEqual(len(self.created("services")), 1)

    def test_a_start_from_suspension_one_worker_fewer_and_an_end_after_which_nothing_is_left(self):
        self.apply(program(self.UNTIL_TOLD, workers=3, suspend=True, cleanPodPolicy="All", ttlSecondsAfterFinished=3600))
        self.until(lambda: self.condition("Suspended").get("status") == "True", "the suspension")
        self.suspend(False)
        self.until_running(members=3)
        self.kubectl("scale", "tj/story", "--replicas=2")
        self.until_running(members=2, round_=2)
        (self.folder / "told").touch()
        self.until_ended("Succeeded")
        self.until(lambda: not self.pods(with_deleted=True), "the end of the pods")
        self.assertEqual((self.restarts(), len(self.created("pods")), len(self.created("services"))), (0, 3, 1))
        self.expire()
        self.until(lambda: self.job() is None, "the end of the job")
        self.assertGreater(self.starts, 8, "the operator was hardly killed")

    def test_an_eviction_a_worker_out_of_memory_and_one_deleted_by_hand(self):
        self.apply(program(FOREVER, restart={"code": 0, "unknown": 0, "nodeLost": 0}))
        self.until_running(members=2)
        self.kubelet.evict("story-0-0")
        self.until_running(members=2, round_=2)
        self.kubelet.run_out_of_memory("story-1-0")
        self.until_running(members=2, round_=3)
        self.kubectl("delete", "pod", "story-0-1", "--wait=false")
        self.until_running(members=2, round_=4)
        self.until_pods("story-0-2", "story-1-1")
        self.assertEqual(self.status()["restarts"]["byCause"], {"Preemption": 2, "OutOfMemory": 1})
        self.assertEqual(len(self.created("pods")), 5, self.created("pods"))
        self.assertEqual(len(self.created("services")), 1)
        self.assertGreater(self.starts, 10, "the operator was hardly killed")

    def test_failures_past_the_budget(self):
        self.apply(program(["sh", "-c", 'case $RINGMASTER_POD_NAME in story-1-*) exit 1;; esac; exec sleep 1000'], restart={"code": 1},
                           cleanPodPolicy="All"))
        self.until_ended("Failed")
        self.until(lambda: not self.pods(with_deleted=True), "the end of the pods")
        self.assertEqual(self.condition("Failed")["reason"], "RestartBudgetExhausted")
        self.assertEqual(len(self.created("pods")), 3, self.created("pods"))
        self.assertGreater(self.starts, 5, "the operator was hardly killed")

    def test_several_jobs_at_once_whose_pods_may_come_before_their_status(self):
        names = ("story", "second", "third")
        jobs = [program(FOREVER, name=name) for name in names]
        jobs[0]["spec"]["workers"]["replicas"] = 8
        self.apply({"apiVersion": "v1", "kind": "List", "items": jobs})
        for name in names:
            self.until_running(members=8 if name == "story" else 2, name=name)
        self.assertEqual((len(self.created("pods")), len(self.created("services"))), (12, 3))
        self.assertEqual([self.restarts(name) for name in names], [0, 0, 0])
        self.assertGreater(self.starts, 8, "the operator was hardly killed")

    def test_a_deadline_that_passes(self):
        self.apply(program(FOREVER, activeDeadlineSeconds=20, cleanPodPolicy="All"))
        self.until_ended("Failed")
        self.until(lambda: not self.pods(with_deleted=True), "the end of the pods")
        self.assertEqual(self.condition("Failed")["reason"], "DeadlineExceeded")
        self.assertEqual(len(self.created("pods")), 2, self.created("pods"))


class ServerTrouble(BehindAProxy):
    def test_workers_run_on_while_the_server_is_away_and_a_loss_meanwhile_is_mended_after(self):
        self.apply(program(FOREVER))
        self.wait_for_round(1, members=2)
        survivor = self.kubelet.pid("story-0-0")
        self.proxy.go_away()
        self.kubelet.kill("story-1-0")
        self.wait(lambda: self.pods()["story-1-0"]["status"]["phase"] == "Failed", "the kubelet's word")
        self.assertEqual(self.status()["round"], 1)
        self.assertEqual(self.operator.process.wait(timeout=60), 75)  # it could not renew its lease
        self.proxy.come_back()
        self.start_operator()
        self.wait_for_round(2, members=2)
        self.assertEqual(self.kubelet.pid("story-0-0"), survivor)
        self.assertEqual(self.restarts(), 1)
        self.assertEqual(sorted(self.pods()), ["story-0-0", "story-1-1"])

    def test_refusals_that_pass_are_tried_again(self):
        left = {429: 3, 500: 3, 503: 3}

        def answer(method, path):
            if "/leases/" in path:
                return None
            status = next((status for status, times in left.items() if times > 0), None)
            if status:
                left[status] -= 1
            return status

        self.proxy.answer = answer
        self.apply(program(FOREVER))
        self.wait_for_round(1, members=2)
        self.assertEqual(left, {429: 0, 500: 0, 503: 0})
        self.assertEqual(len(self.created("pods")), 2)
        self.assertEqual(len(self.pods(with_deleted=True)), 2)

    def test_slow_answers_delay_and_double_nothing(self):
        def answer(method, path):
            if not is_watch(path):
                time.sleep(1)  # the slowness itself

        self.proxy.answer = answer
        self.apply(program(FOREVER))
        self.wait_for_round(1, members=2)
        self.kubelet.kill("story-1-0")
        self.wait_for_round(2, members=2)
        self.assertIsNone(self.operator.process.poll())  # slow is not gone: it leads on
        self.assertEqual((self.restarts(), len(self.created("pods"))), (1, 3))

    def test_conflicts_and_lost_answers_double_nothing(self):
        half = {"pods": 2, "status": 2}
        conflicts = {"status": 2}

        def kind(path):
            return path.split("?")[0].rsplit("/", 1)[1]

        def answer(method, path):
            if method == "PATCH" and conflicts.get(kind(path), 0) > 0:
                conflicts[kind(path)] -= 1
                return 409
            return None

        def halve(method, path):
            if method in ("POST", "PATCH") and half.get(kind(path), 0) > 0:
                half[kind(path)] -= 1
                return True
            return False

        self.proxy.answer, self.proxy.halve = answer, halve
        self.apply(program(FOREVER))
        self.wait_for_round(1, members=2)
        self.assertEqual((half, conflicts), ({"pods": 0, "status": 0}, {"status": 0}))
        self.assertEqual(sorted(self.pods(with_deleted=True)), ["story-0-0", "story-1-0"])

    def test_pages_of_a_load_balancer_end_and_double_nothing(self):
        left = {asked: [302, 400, 404, 405] for asked in
                (("POST", "pods"), ("DELETE", "pods"), ("PATCH", "status"), ("PUT", "leases"), ("GET", "leases"))}

        def page(method, path):
            parts = path.split("?")[0].split("/")
            pages = left.get((method, parts[-1])) or left.get((method, parts[-2]))
            return pages.pop(0) if pages else None

        self.proxy.page = page
        self.apply(digits(epochs=3, cleanPodPolicy="All"))
        self.wait_for_state("Succeeded")
        self.wait(lambda: not self.pods(with_deleted=True), "the end of the pods")
        self.wait(lambda: not any(left.values()), lambda: f"all pages to be shown: {left}")
        self.assertIsNone(self.operator.process.poll())
        self.assertEqual((self.restarts(), self.status()["round"], len(self.created("pods"))), (0, 1, 2))
        self.assertEqual([event["reason"] for event in self.api.get(f"/api/v1/namespaces/{self.namespace}/events")["items"]
                          if event["type"] == "Warning" and event["source"].get("component") != "kubelet"], [])

    def test_a_deletion_that_meets_a_conflict_is_tried_again(self):
        conflicts = threading.Semaphore(1)

        def answer(method, path):
            return 409 if method == "DELETE" and "/trainingjobs/" in path and conflicts.acquire(blocking=False) else None

        self.proxy.answer = answer
        self.apply(program(["true"], ttlSecondsAfterFinished=1))
        self.wait(lambda: self.job() is None, "the end of the job")
        self.assertFalse(conflicts.acquire(blocking=False), "there was no conflict")

    def test_half_answers_to_lists_watches_and_deletions_lose_and_double_nothing(self):
        half = {"list": threading.Semaphore(4), "watch": threading.Semaphore(6), "DELETE": threading.Semaphore(3)}

        def halve(method, path):
            kind = "watch" if is_watch(path) else "list" if "limit=" in path else method
            return kind in half and half[kind].acquire(blocking=False)

        self.operator.wait_until_it_leads()
        self.assertEqual(self.operator.end(), 0)
        self.proxy.halve = halve
        self.operator = self.start_operator()  # which lists anew
        self.apply(program(FOREVER))
        self.wait_for_round(1, members=2)
        self.kubelet.kill("story-1-0")
        self.wait_for_round(2, members=2)
        self.suspend(True)
        self.wait_for_condition("Suspended")
        self.wait(lambda: not self.pods(with_deleted=True), "the end of the pods")
        for kind, left in half.items():
            self.assertFalse(left.acquire(blocking=False), f"too few of kind {kind} were halved")
        self.assertEqual((self.restarts(), sorted(self.created("pods"))), (1, ["story-0-0", "story-1-0", "story-1-1"]))

    def test_watches_that_expire_lose_no_change(self):
        expired = []

        def answer(method, path):
            if is_watch(path) and len(expired) < 6:
                expired.append(path)
                return 410
            return None

        self.apply(program(FOREVER))
        self.wait_for_round(1, members=2)
        self.proxy.answer = answer
        self.proxy.break_connections()
        self.kubelet.kill("story-0-0")
        self.wait_for_round(2, members=2)
        self.assertEqual(len(expired), 6)
        self.assertEqual(self.restarts(), 1)


class LongOutage(BehindAProxy):
    operator_flags = ("--lease-duration=180", "--renew-deadline=150")  # it leads for as long as that

    def test_a_leader_outlasts_a_minute_without_the_server_and_mends_then_what_was_lost(self):
        self.apply(program(FOREVER))
        self.wait_for_round(1, members=2)
        survivor = self.kubelet.pid("story-0-0")
        self.proxy.go_away()
        gone = time.monotonic()
        self.kubelet.kill("story-1-0")
        self.kubectl("scale", "tj/story", "--replicas=3")
        self.wait(lambda: time.monotonic() - gone > 60, "the outage, which is to be as long as that")
        self.assertEqual((self.status()["round"], sorted(self.pods(with_deleted=True))), (1, ["story-0-0", "story-1-0"]))
        self.proxy.come_back()
        self.wait_for_round(2, members=3)
        self.assertIsNone(self.operator.process.poll())
        self.assertEqual(self.kubelet.pid("story-0-0"), survivor)
        self.assertEqual(sorted(self.pods()), ["story-0-0", "story-1-1", "story-2-0"])
        self.assertEqual((self.restarts(), len(self.created("pods")), len(self.created("services"))), (1, 4, 1))


class CutOff(StoryTest):
    def test_worker_of_a_node_that_is_cut_off_is_fenced_and_replaced(self):
        self.apply(digits(epochs=ENDLESS))
        self.wait_for_step(20)
        launcher = self.kubelet.pid("story-1-0")
        self.kubelet.cut_off("story-1-0")
        os.kill(launcher, signal.SIGSTOP)
        self.wait_for_round(2)
        members = {member["pod"] for member in self.status()["members"]}
        self.assertNotIn("story-1-0", members)
        self.assertIn("story-1-0", self.pods(with_deleted=True))  # nobody there removes it
        step = self.status()["progress"]["step"]
        os.kill(launcher, signal.SIGCONT)  # the network is back, the worker is of an old round
        self.wait(lambda: is_gone(launcher), "the fenced launcher to leave")
        self.wait_for_step(step + 20)
        self.assertEqual(self.restarts(), 1)


if __name__ == "__main__":
    main()
