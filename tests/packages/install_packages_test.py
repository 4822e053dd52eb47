#!/usr/bin/env python3
"""cmake/install-packages.sh on machines of each kind: packages there or missing, root, sudo or neither. apt-get, sudo, id and dpkg-query are played."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from testing import ROOT, main  # noqa: E402

MISSING = "ninja-build"
COMMAND = f"apt-get update && apt-get install -y --no-install-recommends {MISSING}"


class InstallPackages(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ringmaster-test-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def play(self, name, script):
        (self.folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (self.folder / name).chmod(0o755)

    def install(self, *, missing=True, user=0, sudo="exit 1", apt="true"):
        """(exit code, what was said, the calls of apt-get)"""
        self.play("dpkg-query", f'[ "$3" = {MISSING} ] && exit {int(missing)}; echo install ok installed' if missing else "echo install ok installed")
        self.play("id", f"echo {user}")
        self.play("sudo", sudo)
        self.play("apt-get", f'echo "$@" >> {self.folder}/calls; {apt}')
        answer = subprocess.run([ROOT / "cmake/install-packages.sh"], env={"PATH": f"{self.folder}:{os.environ['PATH']}"}, capture_output=True, text=True,
                                timeout=60)
        calls = self.folder / "calls"
        return answer.returncode, answer.stdout + answer.stderr, calls.read_text().splitlines() if calls.exists() else []

    def test_nothing_is_done_where_all_packages_are_there(self):
        self.assertEqual(self.install(missing=False), (0, "", []))

    def test_root_gets_the_missing_ones_installed(self):
        code, said, calls = self.install()
        self.assertEqual((code, calls), (0, ["update -qq", f"install -y -qq --no-install-recommends {MISSING}"]), said)

    def test_so_does_who_may_use_sudo_without_a_password(self):
        code, said, calls = self.install(user=1000, sudo='shift; exec "$@"')
        self.assertEqual((code, len(calls)), (0, 2), said)

    def test_anybody_else_is_told_the_command(self):
        code, said, calls = self.install(user=1000)
        self.assertEqual((code, calls), (1, []))
        self.assertIn(COMMAND, said)

    def test_so_is_root_where_the_installation_fails(self):
        code, said, _ = self.install(apt="exit 100")
        self.assertEqual(code, 1)
        self.assertIn(COMMAND, said)


if __name__ == "__main__":
    main()
