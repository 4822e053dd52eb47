#!/usr/bin/env python3
"""Threads that are bound to cores: where the system says that they may run, what the log says, and that no bit depends on it."""
import os
import pathlib
import re
import unittest

from ringmaster_run import LONG, SHORT, RunTest, main, ringmaster

ALLOWED = sorted(os.sched_getaffinity(0))
# Four shards whatever the number of workers.
SHARDS = ["--set", "spec.workers.maxReplicas=4"]


def bound(threads=1, communication=0):
    return ["--set", "spec.trainer.cores.bind=Cores", "--set", f"spec.trainer.cores.communication={communication}",
            "--set", f"spec.trainer.threadsPerWorker={threads}"]


def processors(text):
    """{0, 1, 4} of "0-1,4"."""
    numbers = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        numbers.update(range(int(first), int(last or first) + 1))
    return numbers


def threads_of(pid):
    """{thread: processors that it may run on} of a process; the first thread's number is the process's."""
    found = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            status = (task / "status").read_text()
        except OSError:
            continue  # it has ended
        found[int(task.name)] = processors(re.search(r"^Cpus_allowed_list:\t(\S+)$", status, re.MULTILINE)[1])
    return found


@unittest.skipIf(len(ALLOWED) < 2, "needs two processors")
class BoundThreads(RunTest):
    def log(self):
        text = ringmaster(self.folder, "logs", "digits").stdout
        if "the control group has the time of" in text:
            self.skipTest("this machine's control group shares its processors with others")
        return text

    def test_each_worker_computes_on_a_core_of_its_own_with_the_same_bits(self):
        run = self.digits(*LONG, *SHARDS, *bound(), "--workers", "2")
        run.wait_for_step(10)
        self.log()
        computing = []
        for pid in run.workers().values():
            threads = threads_of(pid)
            computing.append(threads.pop(pid))
            self.assertTrue(threads)
            for allowed in threads.values():
                self.assertEqual(allowed, set(ALLOWED), "who does not compute runs anywhere")
        self.assertEqual([len(cores) for cores in computing], [1, 1])
        self.assertNotEqual(*computing)
        said = re.findall(r" ready .* cores=(\S+)", self.log())
        self.assertCountEqual([processors(cores) for cores in said], computing)
        self.assertEqual(run.result(), self.undisturbed(*LONG))

    def test_the_team_of_a_worker_is_bound_thread_by_thread(self):
        run = self.digits(*LONG, *SHARDS, *bound(threads=2), "--workers", "1")
        run.wait_for_step(10)
        self.log()
        (pid,) = run.workers().values()
        alone = [allowed for allowed in threads_of(pid).values() if len(allowed) == 1]
        self.assertEqual(len(alone), 2)
        self.assertNotEqual(*alone)

    def test_no_bit_depends_on_whether_a_team_of_two_is_bound(self):
        results = {self.digits(*SHORT, *SHARDS, *cores, "--workers", "1", folder=self.fresh_folder()).result()
                   for cores in (bound(threads=2), ["--set", "spec.trainer.threadsPerWorker=2"])}
        self.assertEqual(len(results), 1, results)

    def test_communication_has_the_cores_that_are_set_apart_for_it(self):
        run = self.digits(*LONG, *SHARDS, *bound(communication=1), "--workers", "1")
        run.wait_for_step(10)
        self.log()
        (pid,) = run.workers().values()
        threads = threads_of(pid)
        computing = threads.pop(pid)
        apart = set.union(*threads.values())
        self.assertFalse(computing & apart, threads)
        for allowed in threads.values():
            self.assertEqual(allowed, apart)

    @unittest.skipIf(len(ALLOWED) > 64, "this machine has cores enough")
    def test_a_worker_without_cores_enough_says_so_and_trains(self):
        results = self.digits(*SHORT, *bound(communication=64)).result()
        self.assertEqual(results, self.undisturbed(*SHORT))
        self.assertRegex(self.log(), r"compute threads are not bound to cores +why=.*too few cores")
        self.assertIn("cores=any", self.log())


if __name__ == "__main__":
    main()
