#!/usr/bin/env python3
"""What images/stage.py lays out: it is whole, it says where it is from, and it is the same bytes every time."""
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from testing import BIN, ROOT, main  # noqa: E402

PROGRAMS = {"operator": ["ringmaster-operator"], "worker": ["ringmaster-launcher", "ringmaster-train"]}


def stage(out):
    subprocess.run([sys.executable, ROOT / "images/stage.py", BIN, out], check=True, timeout=300, env={**os.environ, "SOURCE_DATE_EPOCH": "1"})


def tree(root):
    """{path: (mode, time, digest)} of everything below."""
    found = {}
    for path in sorted(root.rglob("*")):
        info = path.lstat()
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[path.relative_to(root).as_posix()] = (oct(info.st_mode), info.st_mtime, digest)
    return found


class StageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="ringmaster-stage-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        stage(cls.folder / "context")

    def test_programs_run_with_the_staged_libraries_and_the_c_library_alone(self):
        libc = self.folder / "libc"
        libc.mkdir()
        for name in subprocess.run(["dpkg-query", "--listfiles", "libc6"], capture_output=True, text=True, check=True).stdout.split():
            if ".so" in name and pathlib.Path(name).is_file():
                shutil.copy(name, libc)
        loader, = libc.glob("ld-linux*")
        for image, programs in PROGRAMS.items():
            root = self.folder / "context" / image
            path = ":".join(map(str, [libc, *root.glob("usr/lib/*"), root / "usr/local/lib"]))
            for program in programs:
                done = subprocess.run([loader, "--inhibit-cache", "--library-path", path, root / "usr/local/bin" / program, "--help"],
                                      capture_output=True, text=True, timeout=60)
                self.assertEqual(done.returncode, 0, f"{program}: {done.stderr}")
                loaded = subprocess.run([loader, "--inhibit-cache", "--library-path", path, "--list", root / "usr/local/bin" / program],
                                        capture_output=True, text=True, timeout=60).stdout
                outside = [line for line in loaded.splitlines() if "=> /" in line and str(self.folder) not in line]
                self.assertEqual(outside, [])

    def test_every_package_is_recorded_with_version_and_licence(self):
        for image in PROGRAMS:
            root = self.folder / "context" / image
            records = list((root / "var/lib/dpkg/status.d").iterdir())
            self.assertIn("libgrpc++1.51", [record.name for record in records])
            for record in records:
                self.assertRegex(record.read_text(), r"(?m)^Version: \S+")
                self.assertTrue((root / "usr/share/doc" / record.name / "copyright").is_file(), record.name)

    def test_examples_find_their_data(self):
        for name in ("digits.csv", "tinyshakespeare.txt"):
            self.assertTrue((self.folder / "context/worker/workspace" / name).is_file(), name)

    def test_staging_again_gives_the_same_bytes(self):
        os.umask(0o077)
        stage(self.folder / "again")
        self.assertEqual(tree(self.folder / "again"), tree(self.folder / "context"))

    def test_a_program_that_is_not_built_is_named(self):
        done = subprocess.run([sys.executable, ROOT / "images/stage.py", self.folder / "empty", self.folder / "out"], capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, "ringmaster-operator is not there; `make build`")


if __name__ == "__main__":
    main()
