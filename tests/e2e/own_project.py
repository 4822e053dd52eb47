"""Projects of a user's own that are written with what is installed, as the examples in C++ are."""
import os
import shutil
import subprocess

from ringmaster_run import BIN, ROOT, RunTest

SANITIZER = os.environ.get("RINGMASTER_TEST_SANITIZER")
# A program beside sanitized ones must be one itself.
FLAGS = [f"-DCMAKE_CXX_FLAGS=-fsanitize={SANITIZER}"] if SANITIZER else []


class OwnProjectTest(RunTest):
    """Of one of the examples, copied out of the tree."""
    example = None

    def setUp(self):
        super().setUp()
        self.prefix = self.folder / "prefix"
        self.project = self.folder / "project"
        shutil.copytree(ROOT / "examples" / self.example, self.project, ignore=shutil.ignore_patterns("build", ".ringmaster"))

    def succeed(self, *command):
        answer = subprocess.run(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(answer.returncode, 0, answer.stdout)
        return answer.stdout

    def build(self):
        self.succeed("cmake", "--install", BIN.parent, "--prefix", self.prefix)
        self.succeed("cmake", "-S", self.project, "-B", self.project / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}", *FLAGS)
        self.succeed("cmake", "--build", self.project / "build")
