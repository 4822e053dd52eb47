#!/usr/bin/env python3
"""The benchmark on a small scale: its results are right, and what the operator costs in calls and memory keeps within bounds.

Times differ from machine to machine and with what else runs there, so they are printed as ratios and nothing is asked of them.
"""
import os
import unittest

import world  # first: it says where modules are looked for
import contenders
import memory
import streams
from testing import main

JOBS = 6
WARM = 20
FINISHED = 400
STATUS_WRITES_PER_JOB = 4  # it begins, its pods come one after another, they run; and one more for each second that they take
KB_PER_JOB = 60  # 4 of them the job's own; the rest is what the operator has needed once, whatever the number of jobs
KB_PER_STREAM = 400  # 120 of them the stream's own; the rest is what the first streams have brought about, once


class OperatorCostTest(unittest.TestCase):
    def setUp(self):
        if world.binaries.missing(world.binaries.SETS["control-plane"]):
            self.skipTest("programs of the cluster are missing: make cluster")
        os.environ.pop("RINGMASTER_TEST_KUBECONFIG", None)  # a cluster of our own

    def test_a_pod_costs_one_call_a_job_few_and_finished_jobs_and_streams_little_memory(self):
        with world.Cluster(contenders.WORKERS * JOBS + WARM) as cluster:
            # The race last: by then the cluster has long seen our kind.
            with self.subTest("streams"):
                self.streams(cluster)
            contenders.empty(cluster, world.NAMESPACE)
            with self.subTest("finished jobs"):
                self.finished_jobs(cluster)
            contenders.empty(cluster, world.NAMESPACE)
            with self.subTest("pods"):
                self.pods(cluster)

    def streams(self, cluster):
        found = streams.measure(cluster, contenders.WORKERS * JOBS, seconds=3)
        print(f"{found['kbEach']:.0f} kB for each of {found['streams']} streams, joined after {found['joinSeconds']:.1f} s; "
              f"heartbeats late by {found['lateP99Ms']:.0f} ms (p99)")
        self.assertEqual(found["streams"], contenders.WORKERS * JOBS)
        self.assertGreater(found["heartbeats"], found["streams"])
        self.assertLess(found["kbEach"], KB_PER_STREAM)

    def finished_jobs(self, cluster):
        found = memory.measure(cluster, FINISHED, seconds=1)
        each = 1024 * (found["mb"] - found["emptyMb"]) / FINISHED
        print(f"{each:.1f} kB for each finished job")
        self.assertLess(each, KB_PER_JOB)

    def pods(self, cluster):
        contenders.warm_up(cluster, WARM, ("trainingjobs",))
        pod = contenders.pod_of_ours(cluster)
        plain = contenders.race(cluster, contenders.Plain(pod), JOBS)
        ours = contenders.race(cluster, contenders.Ringmaster(), JOBS)
        ratios = {key: f"{ours[key] / plain[key]:.2f}" for key in ("created", "running")}
        print(f"rates beside the plain client's: {ratios}; CPU in ms a pod: {plain['cpu']} and {ours['cpu']}; calls: {ours['calls']}")
        calls = ours["calls"]
        self.assertEqual(calls["POST pods 201"], 1)
        self.assertEqual(plain["calls"]["POST pods 201"], 1)
        refused = [call for call in calls if call.startswith("POST pods") and not call.endswith(" 201")]
        self.assertEqual(refused, [], "pods were asked for twice")
        seconds = JOBS * contenders.WORKERS / ours["running"]
        self.assertLessEqual(calls.get("PATCH trainingjobs/status 200", 0) * contenders.WORKERS, STATUS_WRITES_PER_JOB + seconds)


if __name__ == "__main__":
    main()
