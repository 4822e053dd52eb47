#!/usr/bin/env python3
"""Where the cluster's programs come from, and what is said where they cannot be had: in a line, with what to do."""
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

# Go as Debian 12 has it, where no module proxy is reached.
OLD_GO = '#!/bin/sh\n[ "$1" = version ] && { echo "go version go1.19.8 linux/amd64"; exit 0; }\necho "no route to host" >&2\nexit 1\n'


class ProgramsTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ringmaster-programs-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def program(self, name, text="#!/bin/sh\n"):
        path = self.folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return path

    def build(self, *options, **environment):
        kept = {name: value for name, value in os.environ.items() if name not in ("RINGMASTER_TEST_KUBECONFIG", "KUBEBUILDER_ASSETS")}
        return subprocess.run([sys.executable, "-B", HERE / "build", *options], capture_output=True, text=True, timeout=60,
                              env={**kept, "XDG_CACHE_HOME": str(self.folder / "cache"), **environment})

    def test_an_old_go_that_cannot_fetch_a_newer_one_is_said_in_a_line(self):
        self.program("go", OLD_GO)
        done = self.build(PATH=f"{self.folder}/bin:{os.environ['PATH']}")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.splitlines()[-1], f"Go {binaries.GO_VERSION} cannot be fetched: no route to host")

    def test_programs_that_are_missing_are_named_with_how_to_get_them(self):
        done = self.build("--check")
        self.assertEqual((done.returncode, done.stderr.splitlines()), (1, [f"etcd is not there; {binaries.HOW}"]))

    def test_programs_of_kubebuilder_assets_go_first(self):
        for name in binaries.USABLE:
            self.program(name)
        self.assertEqual(self.build("--check", KUBEBUILDER_ASSETS=str(self.folder / "bin")).returncode, 0)

    def test_with_a_cluster_that_exists_kubectl_is_enough(self):
        self.program("kubectl")
        assets = {"KUBEBUILDER_ASSETS": str(self.folder / "bin")}
        self.assertEqual(self.build("--check", **assets).returncode, 1)
        self.assertEqual(self.build("--check", RINGMASTER_TEST_KUBECONFIG="/a/kubeconfig", **assets).returncode, 0)


if __name__ == "__main__":
    main()
