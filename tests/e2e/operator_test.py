#!/usr/bin/env python3
"""What `ringmaster-operator` promises on a machine without Kubernetes: it runs the manifests of a folder, and outlives its own end."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

from ringmaster_run import LONG, LONG_EPOCHS, ROOT, Run, RunTest, main, processes, wait_until

OPERATOR = pathlib.Path(os.environ.get("RINGMASTER_BIN_DIR", ROOT / "build/release/bin")) / "ringmaster-operator"
STOPS_WITHIN = 20  # seconds; on a machine that is busy


class Operator(Run):
    """`ringmaster-operator` of `folder`/manifests. Its state lies where `ringmaster get operator` finds it."""

    def __init__(self, folder, *arguments):
        self.folder = folder
        self.output = tempfile.TemporaryFile()
        self.process = subprocess.Popen([str(OPERATOR), *arguments], cwd=folder, stdout=self.output, stderr=subprocess.STDOUT)

    def job(self, name="operator"):
        return super().job("operator")

    def step(self, name="operator"):
        return super().step("operator")

    def result_of_job(self):
        """(digest, steps) of the folder's only job, once it has succeeded."""
        def ended():
            if not self.running():
                raise AssertionError(f"the operator ended:\n{self.text()}")
            status = self.job().get("status", {})
            if status.get("state") == "Failed":
                raise AssertionError(f"the job failed: {status['conditions']}\n{self.text()}")
            return status if status.get("state") == "Succeeded" else None
        result = wait_until(ended, "the job's success")["result"]
        return result["weightsSha256"], result["steps"]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=STOPS_WITHIN)


class OperatorTest(RunTest):
    def setUp(self):
        super().setUp()
        self.manifests = self.folder / "manifests"
        self.manifests.mkdir()
        self.state = self.folder / ".ringmaster/operator"

    def operator(self, *arguments):
        operator = Operator(self.folder, *(arguments or ("--manifests", "manifests", "--state", str(self.state))))
        self.runs.append(operator)
        return operator

    def place_digits(self):
        """The job of LONG, and the weights that it ends with when nothing happens to it."""
        shutil.copy(ROOT / "examples/digits/digits.csv", self.manifests)
        text = (ROOT / "examples/digits/job.yaml").read_text()
        text = text.replace("epochs: 20", f"epochs: {LONG_EPOCHS}").replace("everySteps: 50", "everySteps: 10")
        (self.manifests / "digits.yaml").write_text(text)
        return self.undisturbed(*LONG)[:2]

    def family(self, operator):
        return set(operator.workers().values()) | set(operator.workers("ringmaster-launcher").values())


class ManifestFolder(OperatorTest):
    def test_job_of_the_folder_runs_to_its_end(self):
        expected = self.place_digits()
        operator = self.operator()
        self.assertEqual(operator.result_of_job(), expected)
        (self.manifests / "digits.yaml").unlink()
        wait_until(lambda: not operator.job(), "the job's end with its manifest")

    def test_wrong_manifest_is_named_with_its_line_and_the_others_run(self):
        (self.manifests / "a-broken.yaml").write_text("apiVersion: training.ringmaster.dev/v1alpha1\nkind: TrainingJob\n"
                                                      "metadata: {name: broken}\nspec:\n  wrokers: {replicas: 2}\n")
        (self.manifests / "foreign.yaml").write_text(
            "apiVersion: training.ringmaster.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: foreign}\nspec:\n  workers:\n"
            "    template: {spec: {containers: [{name: worker, command: [\"true\"]}]}}\n")
        operator = self.operator()
        wait_until(lambda: operator.job().get("status", {}).get("state") == "Succeeded", "the job beside it")
        self.assertRegex(operator.text(), r"a-broken.yaml:5: spec.wrokers: unknown field; did you mean workers\?")
        self.assertEqual(operator.stop(), 0)


class KilledOperator(OperatorTest):
    def test_killed_operator_leaves_no_worker_and_the_next_one_resumes_with_the_same_bits(self):
        expected = self.place_digits()
        operator = self.operator()
        operator.wait_for_step(40)
        left = self.family(operator)
        self.assertGreaterEqual(len(left), 8)
        operator.kill()
        wait_until(lambda: not left & {pid for pid, _, _ in processes()}, "the workers' ends", deadline=30)
        self.assertGreaterEqual(operator.job()["status"]["checkpoints"][0]["step"], 10)
        again = self.operator()
        self.assertEqual(again.result_of_job(), expected)
        self.assertGreater(again.job()["status"]["round"], 1)

    def test_sigterm_ends_it_promptly_leaves_nothing_and_the_next_one_resumes(self):
        expected = self.place_digits()
        operator = self.operator()
        operator.wait_for_step(40)
        left = self.family(operator)
        self.assertGreaterEqual(len(left), 8)
        self.assertEqual(operator.stop(), 0, operator.text())
        wait_until(lambda: not left & {pid for pid, _, _ in processes()}, "the workers' ends", deadline=STOPS_WITHIN)
        self.assertEqual(self.operator().result_of_job(), expected)


class BadStart(OperatorTest):
    def refused(self, *arguments):
        """(exit code, what was said) of an operator that does not start."""
        operator = self.operator(*arguments)
        return operator.wait(), operator.text()

    def test_missing_and_unknown_flags_are_named(self):
        code, text = self.refused("--state", "state")
        self.assertEqual(code, 64, text)
        self.assertIn("--manifests", text)
        code, text = self.refused("--manifests", "manifests", "--nonsense")
        self.assertEqual(code, 64, text)
        self.assertIn("--nonsense", text)

    def test_missing_manifest_folder_is_named(self):
        code, text = self.refused("--manifests", "nowhere", "--state", "state")
        self.assertEqual(code, 66, text)
        self.assertIn("nowhere", text)

    def test_state_folder_of_another_operator_is_refused_with_its_process(self):
        first = self.operator()
        wait_until(lambda: "operator started" in first.text(), "the first operator")
        code, text = self.refused("--manifests", "manifests", "--state", str(self.state))
        self.assertNotEqual(code, 0)
        self.assertRegex(text, rf"{re.escape(str(self.state))}/lock.*process {first.process.pid}")
        self.assertTrue(first.running())

    def test_metrics_address_that_cannot_be_had_is_named(self):
        code, text = self.refused("--manifests", "manifests", "--state", "state", "--metrics-address", "nonsense")
        self.assertNotEqual(code, 0)
        self.assertIn("nonsense", text)


def offered():
    """{option: default} of what --help says under `With --cluster`; without a default the value is ""."""
    said = subprocess.run([str(OPERATOR), "--help"], capture_output=True, text=True, check=True, timeout=60).stdout
    group = re.search(r"^With --cluster:\n(.*?)^\[Option Group", said, re.MULTILINE | re.DOTALL)[1]
    return dict(re.findall(r"^  (--[a-z-]+)\S*(?: [^\s=]+(?: in \[.*?\])?(?:=(\S+))?)? Needs:", group, re.MULTILINE))


def documented():
    """The same of the table in docs/operator.md, whose rows have an option and a default each, or several with commas between."""
    table = (ROOT / "docs/operator.md").read_text(encoding="utf-8").split("\n## Options with `--cluster`\n")[1].split("\n## ")[0]
    found = {}
    for names, default in re.findall(r"^\| (`--.*?) \| (.*?) \|", table, re.MULTILINE):
        options = re.findall(r"`(--[a-z-]+)", names)
        defaults = default.replace("`", "").split(", ")
        found.update(zip(options, defaults if len(options) == len(defaults) else [default.replace("`", "")] * len(options)))
    return found


class OperatorOptionsTest(unittest.TestCase):
    def test_the_table_in_the_docs_has_every_option_and_its_default(self):
        options, table = offered(), documented()
        self.assertGreater(len(options), 15)
        self.assertEqual(set(options) | {"--metrics-address"}, set(table))
        for option, default in options.items():
            if default:
                self.assertEqual(table[option], default, option)


if __name__ == "__main__":
    main()
