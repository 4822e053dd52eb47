#!/usr/bin/env python3
"""A kernel of its own for tests: what a command does there stays there, and control groups of version 2 work as nodes need them."""
import pathlib
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from testing import main  # noqa: E402


class OwnKernel(unittest.TestCase):
    def run_there(self, program):
        """(exit code, output) of a program in Python, which finds this folder's modules."""
        script = f"import pathlib, sys; sys.path.insert(0, {str(HERE)!r})\n" + program
        done = subprocess.run([HERE / "own_kernel", sys.executable, "-B", "-c", script], capture_output=True, text=True, timeout=240)
        return done.returncode, done.stdout + done.stderr

    def test_a_command_tells_its_exit_code_and_leaves_nothing(self):
        left = HERE / "left-by-a-test"
        code, said = self.run_there(f"path = pathlib.Path({str(left)!r}); path.write_text('here'); print(path.read_text()); sys.exit(7)")
        self.assertEqual((code, said), (7, "here\n"))
        self.assertFalse(left.exists())

    def test_a_nodes_group_has_what_a_kubelet_asks_for_and_can_be_removed(self):
        code, said = self.run_there("""
import namespaces
namespaces.make_cgroup("cluster")
namespaces.make_cgroup("cluster/node-0")
print((namespaces.CGROUPS / "cluster/node-0/cgroup.controllers").read_text())
namespaces.remove_cgroups("cluster")
print((namespaces.CGROUPS / "cluster").exists())""")
        self.assertEqual(code, 0, said)
        self.assertLessEqual({"cpu", "memory", "pids"}, set(said.split()))
        self.assertIn("False", said)

    def test_a_memory_limit_kills_and_the_kill_is_counted(self):
        code, said = self.run_there("""
import namespaces, subprocess
namespaces.make_cgroup("limited")
group = namespaces.CGROUPS / "limited"
(group / "memory.max").write_text("50M")
into = lambda: (group / "cgroup.procs").write_text("0")
print(subprocess.run([sys.executable, "-c", "bytearray(200 << 20)"], preexec_fn=into).returncode)
print((group / "memory.events").read_text())""")
        self.assertEqual(code, 0, said)
        self.assertIn("-9", said.split())
        self.assertIn("oom_kill 1", said)


if __name__ == "__main__":
    main()
