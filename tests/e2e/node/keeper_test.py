#!/usr/bin/env python3
"""A cluster with a real node leaves nothing on the machine, however it ends: no process, mount, interface or cgroup."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

TESTS = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TESTS / "support"), str(TESTS / "cluster")]
import control_plane  # noqa: E402
import namespaces  # noqa: E402
import supervisor  # noqa: E402
from testing import BIN, main, processes, wait_until  # noqa: E402

IMAGES = BIN.parent / "test-images"


class KeeperOfNodes(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ringmaster-keeper-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.addCleanup(supervisor.stop, self.folder)
        self.before = self.machine()
        supervisor.start(self.folder, control_plane.Options(nodes=0, kubelets=1, images=(str(IMAGES / "base.tar"),)), os.getpid())

    def machine(self):
        """What a node could leave."""
        links = subprocess.run(["ip", "-br", "link"], capture_output=True, text=True, check=True).stdout
        rules = subprocess.run(["iptables-save"], capture_output=True, text=True, check=True).stdout
        return pathlib.Path("/proc/self/mounts").read_text(), links, "".join(line for line in rules.splitlines(True) if not line.startswith("#"))

    def running(self):
        return [command for _, _, command in processes() if any(str(self.folder) in word for word in command)]

    def cgroups(self):
        return list(namespaces.CGROUPS.rglob(control_plane.cgroup(self.folder)))

    def make_pod(self):
        """A pod that would run for ever."""
        made = subprocess.run([TESTS / "cluster/enter", self.folder, control_plane.binaries.find("kubectl"), "run", "sleeper",
                               "--image=localhost/ringmaster-test-base:1", "--", "sh", "-c", "while :; do sleep 1; done", str(self.folder)],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(made.returncode, 0, made.stderr)
        wait_until(lambda: any(command[:2] == ["sh", "-c"] for command in self.running()), "the pod to run")

    def nothing_runs(self):
        wait_until(lambda: not self.running(), lambda: f"the end of {self.running()}", deadline=60)

    def test_nothing_is_left_when_it_is_told_to_stop(self):
        self.make_pod()
        self.assertNotEqual(self.cgroups(), [])
        supervisor.stop(self.folder)
        self.nothing_runs()
        self.assertEqual((self.cgroups(), self.machine()), ([], self.before))

    def test_nothing_runs_when_its_keeper_is_killed(self):
        self.make_pod()
        os.kill(int((self.folder / "pid").read_text()), signal.SIGKILL)
        self.nothing_runs()
        self.assertEqual(self.machine(), self.before)
        supervisor.stop(self.folder)
        self.assertEqual(self.cgroups(), [])


if __name__ == "__main__":
    main()
