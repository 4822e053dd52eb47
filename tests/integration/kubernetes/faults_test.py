#!/usr/bin/env python3
"""Faults at random: each call of the operator fails with a probability of a tenth. The end is as it is without, and nothing is made twice.

The seed is printed; RINGMASTER_TEST_SEED repeats its faults: the n-th call of a kind meets the same one, in whatever order the kinds come.
"""
import collections
import os
import random
import threading
import time

from api_proxy import WRITES, is_watch
from outage_test_case import Mortal, resource_of
from story_test_case import FOREVER, program
from testing import main

SEED = int(os.environ.get("RINGMASTER_TEST_SEED", random.randrange(1 << 30)))
SLOW = 2  # seconds
DROPPED, HALVED, DELAYED = "dropped", "halved", "delayed"


class Faults:
    """Takes the proxy's decisions."""
    PROBABILITY = 0.1

    def __init__(self, proxy):
        self._calls = collections.Counter()  # by kind
        self._mutex = threading.Lock()
        self._call = threading.local()  # a call is one thread's
        self.met = collections.Counter()
        proxy.swallow, proxy.answer, proxy.halve = self._swallow, self._answer, self._halve

    def _swallow(self, method, path, body):
        """The first that a call asks."""
        kind = f"{'WATCH' if is_watch(path) else method} {resource_of(path) or path.split('?')[0]}"
        with self._mutex:
            self._calls[kind] += 1
            dice = random.Random(f"{SEED} {kind} {self._calls[kind]}")
            self._call.meets = None
            if dice.random() < self.PROBABILITY:
                self._call.meets = dice.choice([429, 500, 503, DROPPED, HALVED, DELAYED] + [409] * (method in WRITES))
                self.met[self._call.meets] += 1
        return self._call.meets == DROPPED

    def _answer(self, method, path):
        if self._call.meets == DELAYED:
            time.sleep(SLOW)  # the slowness itself
        return self._call.meets if isinstance(self._call.meets, int) else None

    def _halve(self, method, path):
        return self._call.meets == HALVED


class RandomFaults(Mortal):
    """An operator that ends because of them is started again."""
    operator_flags = ("--lease-duration=30", "--renew-deadline=20")

    def write_kubeconfig(self, account):
        path = super().write_kubeconfig(account)
        print(f"RINGMASTER_TEST_SEED={SEED}", flush=True)
        self.faults = Faults(self.proxy)
        self.addCleanup(lambda: print(f"faults: {dict(self.faults.met)}; the operator was started again {self.starts} times", flush=True))
        return path

    def test_jobs_that_are_lost_scaled_suspended_and_end_come_to_the_same(self):
        script = """case $RINGMASTER_POD_NAME in
            *-1-0) exit 130;;
            *-1-1) echo "shapes differ in step 7"; exit 1;;
            esac; exec sleep 1000"""
        self.apply({"apiVersion": "v1", "kind": "List", "items": [
            program(FOREVER, restart={"code": 0, "nodeLost": 0}),
            program(["sh", "-c", script], name="failing", restart={"code": 0}, ttlSecondsAfterFinished=3600),
            program(["sh", "-c", "case $RINGMASTER_POD_NAME in *-0-?) exit 0;; esac; exec sleep 1000"], name="ending", successPolicy="WorkerZero",
                    cleanPodPolicy="Running")]})
        self.until_running(members=2)
        self.kubelet.evict("story-1-0")
        self.until_running(members=2, round_=2)
        self.kubectl("scale", "tj/story", "--replicas=3")
        self.until_running(members=3, round_=3)
        self.kubectl("delete", "service", "story")
        self.until(lambda: "story" in self.services(), "the service to come back")
        self.kubectl("scale", "tj/story", "--replicas=2")
        self.until_running(members=2, round_=4)
        self.until_pods("story-0-0", "story-1-1")
        self.suspend(True)
        self.until_suspended()
        self.suspend(False)
        self.until_running(members=2, round_=5)
        self.until_ended("Failed", "failing")
        self.assertIn("shapes differ in step 7", self.condition("Failed", "failing")["message"])
        self.expire("failing")
        self.until(lambda: self.job("failing") is None, "the end of the job that failed")
        self.until_ended("Succeeded", "ending")
        self.until(lambda: sorted(self.pods("ending", with_deleted=True)) == ["ending-0-0"], "the end of the running pod")
        self.assertEqual(self.status()["restarts"]["byCause"], {"Preemption": 1})
        self.assertEqual((self.restarts("ending"), self.status()["round"], self.status("ending")["round"]), (0, 5, 1))
        self.assertEqual(sorted(self.created("pods", of="failing")), ["failing-0-0", "failing-1-0", "failing-1-1"])
        self.assertEqual(sorted(self.created("pods", of="ending")), ["ending-0-0", "ending-1-0"])
        self.assertEqual(len(self.created("pods", of="story")), 6, self.created("pods", of="story"))
        self.assertEqual(len(self.created("services", of="story")), 3)
        self.assertTrue(self.faults.met, "nothing went wrong")


if __name__ == "__main__":
    main()
