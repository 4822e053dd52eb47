#!/usr/bin/env python3
"""Which builder images/build.sh takes and what it asks of it, with builders that only note that: not every machine has each."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from testing import BIN, ROOT, main  # noqa: E402

BUILDERS = ("buildah", "podman", "docker")
# Notes its arguments, and whether what it is to build is there; `docker info` ends as the file INFO says.
NOTES = """#!/usr/bin/env python3
import json, os, pathlib, sys
here = pathlib.Path(sys.argv[0]).parent.parent
name, words = pathlib.Path(sys.argv[0]).name, sys.argv[1:]
if words == ["info"]:
    sys.exit(int((here / "info").read_text()))
with open(here / "calls", "a") as calls:
    calls.write(json.dumps([name, words, os.path.exists(words[-1] + "/operator/usr/local/bin/ringmaster-operator")]) + "\\n")
"""


class BuilderTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ringmaster-builders-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.out = self.folder / "out"
        self.tools = self.folder / "tools"  # this machine's, but for the builders
        self.tools.mkdir()
        for path in (path for each in os.environ["PATH"].split(":") if os.path.isdir(each) for path in pathlib.Path(each).iterdir()):
            if path.name not in BUILDERS and not (self.tools / path.name).exists():
                (self.tools / path.name).symlink_to(path)

    def build(self, *builders, docker_runs=True):
        """(what became of `images/build.sh operator`, [(builder, its arguments)]) where these are there."""
        (self.folder / "builders").mkdir()
        (self.folder / "info").write_text("0" if docker_runs else "1")
        for name in builders:
            path = self.folder / "builders" / name
            path.write_text(NOTES)
            path.chmod(0o755)
        env = {**os.environ, "PATH": f"{self.folder}/builders:{self.tools}", "BIN": str(BIN), "OUT": str(self.out), "VERSION": "9.9",
               "SOURCE_DATE_EPOCH": "1", "REGISTRY": "registry.example.com/team"}
        env.pop("BUILDER", None)
        done = subprocess.run([ROOT / "images/build.sh", "operator"], env=env, cwd=ROOT, capture_output=True, text=True, timeout=120)
        calls = self.folder / "calls"
        return done, [json.loads(line) for line in calls.read_text().splitlines()] if calls.exists() else []

    def assert_built_by(self, builder, calls, save):
        """With that builder's `build` and then this command, which writes the archive."""
        (built_by, words, staged), (saved_by, saved, _) = calls
        self.assertEqual((built_by, words[0], staged), (builder, "build", True))
        self.assertEqual(words[words.index("--file") + 1], "images/operator.Dockerfile")
        self.assertEqual(words[words.index("--tag") + 1], "registry.example.com/team/ringmaster-operator:9.9")
        for argument in ("VERSION=9.9", "CREATED=1970-01-01T00:00:01Z"):
            self.assertEqual(words[words.index(argument) - 1], "--build-arg")
        self.assertEqual((saved_by, saved), (builder, save))

    def archive(self):
        architecture = subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=True).stdout.strip()
        return str(self.out / f"ringmaster-operator-9.9-{architecture}.tar")

    def test_buildah_goes_first(self):
        done, calls = self.build(*BUILDERS)
        self.assertEqual(done.returncode, 0, done.stderr)
        name = "registry.example.com/team/ringmaster-operator:9.9"
        self.assert_built_by("buildah", calls, ["push", "--quiet", name, f"oci-archive:{self.archive()}:{name}"])

    def test_docker_is_taken_where_it_is_all_there_is(self):
        done, calls = self.build("docker")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_built_by("docker", calls, ["save", "--output", self.archive(), "registry.example.com/team/ringmaster-operator:9.9"])

    def test_podman_is_taken_before_docker(self):
        done, calls = self.build("podman", "docker")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_built_by("podman", calls, ["save", "--quiet", "--format", "oci-archive", "--output", self.archive(),
                                               "registry.example.com/team/ringmaster-operator:9.9"])

    def test_a_docker_whose_daemon_does_not_run_is_none(self):
        done, calls = self.build("docker", docker_runs=False)
        self.assertEqual((done.returncode, calls), (1, []))
        self.assertIn("on Debian: apt-get install buildah", done.stderr)


if __name__ == "__main__":
    main()
