#!/usr/bin/env python3
"""What `tests/cluster/ctest` runs, and what it says of what it leaves out, on tests of the test's own: they leave a file each."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]
import binaries  # noqa: E402
from testing import main  # noqa: E402

# Name: label. As in the project itself, what starts and stops a cluster is labelled as the tests that use it.
TESTS = {"Plain": "unit", "Pods": "cluster", "Gangs": "cluster;gangs", "Node": "node", "Clusters": "clusters"}


class CtestTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ringmaster-ctest-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.declare()

    def declare(self, **commands):
        """Tests that leave a file of their name; those named here run another command."""
        lines = []
        for name, labels in TESTS.items():
            lines += [f'add_test({name} {commands.get(name, f"/usr/bin/touch {self.folder}/{name}.ran")})',
                      f'set_tests_properties({name} PROPERTIES LABELS "{labels}")']
        (self.folder / "CTestTestfile.cmake").write_text("\n".join(lines) + "\n")

    def ctest(self, *arguments, **environment):
        """(exit code, lines of output, names of the tests that ran), where no program of a cluster is in the cache."""
        kept = {name: value for name, value in os.environ.items()
                if name not in ("CI", "RINGMASTER_TEST_KUBECONFIG", "KUBEBUILDER_ASSETS") and not name.startswith("CTEST_")}
        done = subprocess.run([HERE / "ctest", *arguments, "--test-dir", str(self.folder)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=60, env={**kept, "XDG_CACHE_HOME": str(self.folder / "cache"), **environment})
        ran = {path.stem for path in self.folder.glob("*.ran")}
        return done.returncode, done.stdout.splitlines(), ran

    def programs(self, *names):
        """A folder with programs of these names."""
        folder = self.folder / "programs"
        folder.mkdir(exist_ok=True)
        for name in names:
            (folder / name).write_text("#!/bin/sh\n")
            (folder / name).chmod(0o755)
        return str(folder)

    def test_without_a_cluster_its_tests_are_left_out_and_the_last_line_counts_them_and_says_how_to_get_them(self):
        code, lines, ran = self.ctest()
        self.assertEqual((code, ran), (0, {"Plain", "Clusters"}))
        self.assertEqual(lines[-1], f"2 tests labelled 'cluster' were left out: etcd is not there; {binaries.HOW}")
        self.assertIn("100% tests passed, 0 tests failed out of 2", lines)

    def test_only_those_of_the_choice_are_counted(self):
        code, lines, ran = self.ctest("-R", "Pods|Plain")
        self.assertEqual((code, ran), (0, {"Plain"}))
        self.assertTrue(lines[-1].startswith("1 test labelled 'cluster' was left out: "), lines[-1])
        code, lines, _ = self.ctest("-R", "Plain")
        self.assertEqual(code, 0)
        self.assertFalse([line for line in lines if "left out" in line])

    def test_a_failure_is_not_hidden_by_what_is_said_last(self):
        self.declare(Plain="/bin/false")
        code, lines, _ = self.ctest()
        self.assertNotEqual(code, 0)
        self.assertIn("2 tests labelled 'cluster' were left out", lines[-1])

    def test_ci_leaves_none_out(self):
        code, lines, ran = self.ctest(CI="true")
        self.assertEqual((code, ran), (0, {"Plain", "Clusters", "Pods", "Gangs"}))
        self.assertFalse([line for line in lines if "left out" in line])

    def test_who_leaves_them_out_by_hand_is_not_told_so(self):
        code, lines, ran = self.ctest("--without-cluster", KUBEBUILDER_ASSETS=self.programs(*binaries.USABLE))
        self.assertEqual((code, ran), (0, {"Plain", "Clusters"}))
        self.assertFalse([line for line in lines if "left out" in line])

    def test_programs_of_kubebuilder_assets_are_enough(self):
        folder = self.programs(*binaries.USABLE)
        code, _, ran = self.ctest(KUBEBUILDER_ASSETS=folder)
        self.assertEqual((code, ran), (0, {"Plain", "Clusters", "Pods", "Gangs"}))
        (pathlib.Path(folder) / "kube-apiserver").unlink()
        _, lines, _ = self.ctest(KUBEBUILDER_ASSETS=folder)
        self.assertIn("left out: kube-apiserver is not there", lines[-1])

    def test_with_a_cluster_that_exists_kubectl_is_enough(self):
        code, _, ran = self.ctest(RINGMASTER_TEST_KUBECONFIG="/a/kubeconfig", KUBEBUILDER_ASSETS=self.programs("kubectl"))
        self.assertEqual((code, ran), (0, {"Plain", "Clusters", "Pods", "Gangs"}))


if __name__ == "__main__":
    main()
