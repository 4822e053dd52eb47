#!/usr/bin/env python3
"""The `ringmaster` command as its user meets it: logs, the live view, and what is refused with which words and exit code."""
import csv
import json
import math
import os
import pty
import re
import signal
import subprocess
import tempfile
import textwrap
import unittest
from xml.etree import ElementTree

import yaml

from ringmaster_run import DEADLINE, LONG, RINGMASTER, ROOT, SHORT, RunTest, main, output_so_far, ringmaster, wait_until

DIGITS = ROOT / "examples/digits/job.yaml"
CHAR_LM = ROOT / "examples/char-lm/job.yaml"
NOBODY = 65534
COLOUR = re.compile(r"\x1b\[\d*m")


class LogsCommand(RunTest):
    def follow(self, *arguments):
        output = tempfile.TemporaryFile()
        self.addCleanup(output.close)
        process = subprocess.Popen([RINGMASTER, "logs", "digits", "--follow", *arguments], cwd=self.folder, stdout=output, stderr=subprocess.STDOUT)
        self.addCleanup(lambda: process.poll() is None and process.kill())

        def text():
            return output_so_far(output)
        return process, text

    def test_follow_goes_on_across_a_restart_and_ends_with_the_job(self):
        run = self.digits(*LONG)
        run.wait_for_step(10)
        one, text = self.follow("--worker", "1")
        every, texts = self.follow()
        wait_until(lambda: "digits-3-0  " in texts(), "the lines of worker 3")
        every.send_signal(signal.SIGINT)
        self.assertEqual(every.wait(DEADLINE), 0)
        os.kill(run.workers()[1], signal.SIGKILL)
        wait_until(lambda: "digits-1-1  " in text(), "a line of worker 1 after its restart")
        self.assertTrue(run.running(), "who follows sees lines while the job runs")
        run.result()
        self.assertEqual(one.wait(DEADLINE), 0, text())

        def lines(of):
            return sorted(re.sub(r"^digits-1-\d+  ", "", line) for line in of.splitlines())
        written = ringmaster(self.folder, "logs", "digits", "--worker", "1").stdout
        self.assertIn("digits-1-1  ", written)
        self.assertEqual(lines(text()), lines(written), "every line once")

    def test_wrong_names_are_said_with_the_right_ones(self):
        self.assertEqual(ringmaster(self.folder, "logs", "digits").returncode, 66)
        self.digits(*SHORT).result()
        for arguments, words in ((["digitz"], "digitz: no such job under"), (["digitz", "--follow"], "there are: digits"),
                                 (["digits", "--worker", "4"], "digits: no worker 4; there are workers 0 to 3")):
            answer = ringmaster(self.folder, "logs", *arguments)
            self.assertEqual(answer.returncode, 66, arguments)
            self.assertIn(words, answer.stderr)
            self.assertEqual(answer.stdout, "")
        tail = ringmaster(self.folder, "logs", "digits", "--worker", "2", "--tail", "2").stdout
        whole = ringmaster(self.folder, "logs", "digits", "--worker", "2").stdout
        self.assertEqual(tail.splitlines(), whole.splitlines()[-2:])


class LiveView(RunTest):
    """`ringmaster run` on a terminal."""

    def run_on_terminal(self, *arguments, columns=80, **environment):
        user, program = pty.openpty()
        self.addCleanup(os.close, user)
        os.set_blocking(user, False)
        subprocess.run(["stty", "cols", str(columns), "rows", "24"], stdin=program, check=True)
        process = subprocess.Popen([RINGMASTER, "run", str(DIGITS), *arguments], cwd=self.folder, env={**os.environ, **environment},
                                   preexec_fn=lambda: os.login_tty(program), pass_fds=[program])
        os.close(program)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        shown = bytearray()

        def text():
            try:
                while chunk := os.read(user, 65536):
                    shown.extend(chunk)
            except OSError:
                pass  # nothing now, or nobody writes any more
            return shown.decode(errors="replace")
        return process, user, text

    def wait(self, process, text):
        """The exit code; reads on meanwhile, so that a full terminal does not stop the program."""
        wait_until(lambda: text() and process.poll() is not None, "the run's end")
        return process.returncode

    def test_view_fits_the_terminal_and_leaves_it_as_it_was(self):
        process, _, text = self.run_on_terminal(*SHORT, TERM="xterm", NO_COLOR="")
        self.assertEqual(self.wait(process, text), 0, text())
        self.assertRegex(text(), "━+")
        self.assertRegex(text(), COLOUR)
        self.assertEqual(text().count("\x1b[?25l"), text().count("\x1b[?25h"), "the cursor is visible again")
        self.assertGreater(text().rfind("weights sha256:"), text().rfind("\x1b[J"), "what the job measured stays on the screen")
        for line in text().splitlines():
            if "samples/s" in line or "w0 " in line:
                self.assertLessEqual(len(re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\r", "", line)), 80, line)

    def test_view_without_colours(self):
        process, _, text = self.run_on_terminal(*SHORT, TERM="xterm", NO_COLOR="1")
        self.assertEqual(self.wait(process, text), 0, text())
        self.assertRegex(text(), "━+")
        self.assertNotRegex(text(), COLOUR)

    def test_dumb_terminal_gets_lines_and_a_second_ctrl_c_ends_at_once(self):
        process, keyboard, text = self.run_on_terminal(*LONG, TERM="dumb")
        wait_until(lambda: "step" in text(), "progress")
        os.write(keyboard, b"\x03")
        wait_until(lambda: "Ctrl-C again" in text() or process.poll() is not None, "the answer to Ctrl-C")
        os.write(keyboard, b"\x03")
        self.assertEqual(self.wait(process, text), 130, text())
        self.assertNotIn("\x1b", text())
        self.assertRegex(text(), "stopped at (once|step)")  # it may have been quicker than the second key
        self.assertIn("run the same command to resume", text())


class Refusals(RunTest):
    def refused(self, code, words, *arguments, **options):
        answer = subprocess.run([RINGMASTER, *map(str, arguments)], capture_output=True, text=True, timeout=DEADLINE, **{"cwd": self.folder, **options})
        self.assertEqual(answer.returncode, code, f"{arguments}: {answer.stdout}{answer.stderr}")
        self.assertIn(words, answer.stderr)
        self.assertEqual(answer.stdout, "")

    def test_files_that_are_no_manifest(self):
        for name, text in (("empty.yaml", ""), ("comment.yaml", "# nothing\n"), ("list.yaml", "- a\n"), ("two.yaml", DIGITS.read_text() + "---\n" + DIGITS.read_text()),
                           ("broken.yaml", "{a: b: c}"), ("noise.yaml", "\x01\x02")):
            (self.folder / name).write_text(text)
            for command in ("run", "validate"):
                self.refused(65, name, command, name)
        for command in ("run", "validate"):
            self.refused(66, "absent.yaml: No such file", command, "absent.yaml")
            self.refused(65, "Is a directory", command, self.folder)
            self.refused(65, "larger than", command, "/dev/zero")
        self.assertFalse((self.folder / ".ringmaster").exists(), "nothing was started")

    def test_options_that_mean_nothing(self):
        for arguments, words in ((["--workers", "four"], "--workers: 'four' is not a whole number"), (["--metrics-address", "here"], "host:port"),
                                 (["--set"], "--set"), (["--bogus"], "--bogus"), (["other.yaml"], "other.yaml")):
            self.refused(64, words, "run", DIGITS, *arguments)
        self.refused(64, "--tail: -1 is less than 0", "logs", "digits", "--tail", "-1")
        self.refused(64, "yaml", "get", "--output", "yaml")
        self.refused(64, "'loud' is not one of debug, info, warning, error", "get", env={**os.environ, "RINGMASTER_LOG": "loud"})

    def test_values_over_the_manifest_that_cannot_be(self):
        for assignment, words in (("spec.trainer.epochz=3", "did you mean epochs?"), ("spec.trainer.epochs", "is not path=value"),
                                  ("spec.trainer.epochs=x", "'x' is not a number"), ("spec.trainer.batch.size=0", "0 is less than 1"),
                                  ("metadata.name=../x", "metadata.name")):
            self.refused(65, words, "validate", DIGITS, "--set", assignment)
        self.refused(65, "spec.workers.replicas: 0 is less than 1", "run", DIGITS, "--workers", "0")
        self.refused(65, "spec.workers.replicas: -1 is less than 1", "run", DIGITS, "--workers", "-1")

    def test_job_that_runs_already(self):
        run = self.digits(*LONG)
        wait_until(lambda: run.job(), "the job")
        for fresh in ([], ["--fresh"]):
            self.refused(75, f"job digits runs already: {self.folder}/.ringmaster/digits/lock is locked by process {run.process.pid}",
                         "run", DIGITS, *LONG, *fresh)

    def test_damaged_journal_is_named_and_a_fresh_start_helps(self):
        self.digits(*SHORT).result()
        journal = self.folder / ".ringmaster/digits/store.journal"
        content = bytearray(journal.read_bytes())
        content[len(content) // 2] ^= 1
        journal.write_bytes(content)
        self.refused(1, f"{journal}:", "get")
        self.refused(1, f"{journal}:", "get", "digits", "-o", "json")
        self.refused(1, "--fresh", "run", DIGITS, *SHORT)
        self.digits(*SHORT, "--fresh").result()

    def test_manifest_that_says_suspend_is_not_trained(self):
        run = self.digits("--set", "spec.suspend=true")
        self.assertEqual(run.wait(), 130)
        self.assertIn("the manifest says spec.suspend", run.text())

    def test_nothing_here_yet(self):
        self.refused(66, "digits: no such job under", "get", "digits")
        answer = ringmaster(self.folder, "get")
        self.assertEqual((answer.returncode, answer.stdout), (0, ""))
        self.assertIn("no jobs under", answer.stderr)

    def test_current_directory_that_is_gone(self):
        gone = self.folder / "gone"
        gone.mkdir()
        self.refused(66, "the current directory is gone", "get", preexec_fn=gone.rmdir, cwd=gone)

    @unittest.skipUnless(os.geteuid() == 0, "only root can become another user")
    def test_what_this_user_may_not_read_or_write(self):
        self.folder.chmod(0o755)
        secret = self.folder / "secret.yaml"
        secret.write_text(DIGITS.read_text())
        secret.chmod(0o600)
        for command in ("run", "validate"):
            self.refused(66, "secret.yaml: Permission denied", command, secret, user=NOBODY, group=NOBODY, extra_groups=[])
        secret.chmod(0o644)
        self.refused(66, "run this where you may write", "run", secret, user=NOBODY, group=NOBODY, extra_groups=[])

    @unittest.skipUnless(os.geteuid() == 0, "only root can become another user")
    def test_two_users_run_on_one_machine(self):
        mine = self.digits(*LONG)
        mine.wait_for_step(1)
        theirs = self.fresh_folder()
        os.chown(theirs, NOBODY, NOBODY)
        self.folder.chmod(0o755)
        answer = subprocess.run([RINGMASTER, "run", str(DIGITS), *SHORT], cwd=theirs, capture_output=True, text=True, timeout=DEADLINE,
                                user=NOBODY, group=NOBODY, extra_groups=[])
        self.assertEqual(answer.returncode, 0, answer.stdout + answer.stderr)


class BenchCommand(RunTest):
    def test_the_collectives_of_local_ranks_are_verified_and_timed(self):
        answer = ringmaster(self.folder, "bench", "collectives", "--op", "allreduce", "--ranks", "2", "--min", "4", "--max", "4K", "--factor", "32",
                            "--transport", "auto", "--json")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        report = json.loads(answer.stdout)
        self.assertEqual([row["size"] for row in report["rows"]], [4, 128, 4096])
        self.assertEqual(report["wrong"], 0)
        for row in report["rows"]:
            self.assertGreater(row["out_of_place"]["time_us"], 0)
            self.assertGreater(row["in_place"]["busbw"], 0)

    def test_an_algorithm_that_there_is_not_is_refused_by_its_variable(self):
        answer = ringmaster(self.folder, "bench", "collectives", "--sizes", "4", env={"RINGMASTER_COLLECTIVE_ALGORITHM": "rings"})
        self.assertNotEqual(answer.returncode, 0)
        self.assertIn("RINGMASTER_COLLECTIVE_ALGORITHM", answer.stderr)
        self.assertIn("'rings' is not one of auto, direct", answer.stderr)

    def test_training_steps_are_timed_on_samples_that_are_made_up(self):
        answer = ringmaster(self.folder, "bench", "train", "--model", "lenet-bn", "--batch", "8", "--dtype", "f32", "--seconds", "0", "--json")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        report = json.loads(answer.stdout)
        self.assertGreater(report["samples_per_second"], 0)
        self.assertGreater(report["peak_bytes"], 0)
        self.assertAlmostEqual(sum(report["share"].values()), 1)
        unknown = ringmaster(self.folder, "bench", "train", "--model", "lenet-6000")
        self.assertEqual(unknown.returncode, 65)
        self.assertIn('no network is called "lenet-6000"', unknown.stderr)

    def test_wrong_flags_are_the_users_mistake(self):
        self.assertEqual(ringmaster(self.folder, "bench").returncode, 64)
        answer = ringmaster(self.folder, "bench", "collectives", "--min", "4Q")
        self.assertEqual(answer.returncode, 64)
        self.assertIn("--min: '4Q' is not a size; write 4, 64K, 256M or 1G", answer.stderr)
        help_text = ringmaster(self.folder, "bench", "collectives", "--help")
        self.assertEqual(help_text.returncode, 0)
        self.assertIn("--transport", help_text.stdout)


class Guides(RunTest):
    """What the docs tell a user to write."""

    SAMPLES = 1_281_167  # of ImageNet

    def write_job(self, trainer):
        """job.yaml with these lines of spec.trainer."""
        (self.folder / "job.yaml").write_text(
            "apiVersion: training.ringmaster.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: recipe}\nspec:\n  workers: {replicas: 4}\n  trainer:\n" +
            textwrap.indent(trainer, "    "))

    def rates(self, trainer, samples=SAMPLES):
        """The learning rate and weight decay of each step that a job with these lines of spec.trainer takes."""
        fields = {"model": "{zoo: {name: lenet-bn}}", "optimizer": "{sgd: {learningRate: 0.1}}", "batch": "{size: 1024}", "epochs": "60"}
        absent = [f"{name}: {value}" for name, value in fields.items() if f"{name}:" not in trainer and not (name == "epochs" and "\nsteps:" in trainer)]
        lines = "\n".join(["data: {csv: {path: digits.csv, classes: 10, shape: [1, 8, 8]}}", *absent, trainer])
        self.write_job(lines)
        answer = ringmaster(self.folder, "schedule", "plot", "job.yaml", "--samples", str(samples), "--csv", "rates.csv")
        self.assertEqual(answer.returncode, 0, trainer + answer.stderr)
        with open(self.folder / "rates.csv", newline="") as table:
            rows = list(csv.DictReader(table))
        self.assertEqual([int(row["step"]) for row in rows], list(range(len(rows))))
        return [(float(row["learning_rate"]), float(row["weight_decay"])) for row in rows]

    def check_points(self, trainer, steps, rate, decay, samples=SAMPLES):
        points = self.rates(trainer, samples)
        self.assertEqual(len(points), steps)
        for step, (got_rate, got_decay) in enumerate(points):
            alike = math.isclose(got_rate, rate(step), rel_tol=1e-12) and math.isclose(got_decay, decay(step), rel_tol=1e-12)
            self.assertTrue(alike, f"{trainer}: step {step} has {got_rate}, {got_decay}, not {rate(step)}, {decay(step)}")

    def recipes(self):
        return re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/recipes.md").read_text(), re.DOTALL)

    def test_what_the_recipes_make_of_images_is_taken_with_a_collapse_that_sees_them_whole(self):
        caffe, = (lines for lines in self.recipes() if lines.startswith("data:"))
        network = "model: {zoo: {name: resnet-50}}\noptimizer: {sgd: {learningRate: 4.8}}\nbatch: {size: 14336}\nsteps: 8040\nschedule: {collapse: {steps: 402, wholeImages: true}}\n"
        self.write_job(network + caffe)
        torchvision = {"scale": "csv.scale=255", "mean": "images.mean=[0.485, 0.456, 0.406]", "deviation": "images.deviation=[0.229, 0.224, 0.225]"}
        for settings in ((), torchvision.values()):
            sets = [word for setting in settings for word in ("--set", f"spec.trainer.data.{setting}")]
            answer = ringmaster(self.folder, "validate", "job.yaml", *sets)
            self.assertEqual(answer.returncode, 0, answer.stdout + answer.stderr)

    def test_every_recipe_of_the_docs_has_its_formulas_rate_and_decay_at_every_step(self):
        groups, resnet, caffe, cycles, collapse, lars = (lines for lines in self.recipes() if not lines.startswith("data:"))
        small = math.ceil(60 * self.SAMPLES / 1024)  # steps of the batch and the epochs of rates()
        self.check_points(groups, small, lambda i: 12, lambda i: 0.0001)
        self.check_large_batches(resnet)
        self.check_points(caffe, 8040, self.caffe, lambda i: 0.0001 if i < 7638 else 0.0002)

        def cyclic(i):
            x = math.fmod(i * 1024 / self.SAMPLES, 10)
            return 0.1 * (0.1 + 0.9 * (x / 2 if x < 2 else 1 - (x - 2) / 8))
        self.check_points(cycles, small, cyclic, lambda i: 0)
        begin, end = 37534, 43790  # 30 and 35 epochs; the checkpoint that it starts from is one step older
        self.check_points(collapse, end, lambda i: cyclic(i) if i < begin else cyclic(begin) * (1 - (i - begin) / (end - begin)) ** 2, lambda i: 0)
        self.check_points(lars, small, lambda i: 12 * (i / 400 if i < 400 else (1 - i / small) ** 2), lambda i: 0.0005)

    def test_every_other_kind_of_schedule_has_its_formulas_rate_and_decay_at_every_step(self):
        """Rate 0.1, decay 0.0005, ten epochs of ten steps."""
        def epoch(i):
            return i / 10

        def cycle(i):
            x = math.fmod(epoch(i), 4)
            return 0.2 + 0.8 * (x if x < 1 else (1 - (x - 1) / 3) ** 2)
        kinds = {  # the rate, and the decay where it changes, as multiples of the optimizer's
            "warmupSteps: 9": (lambda i: min(i + 1, 10) / 10, None),
            "cosine: {finalFraction: 0.1}": (lambda i: 0.1 + 0.9 * (1 + math.cos(math.pi * i / 99)) / 2, None),
            "stepDecay: {milestones: [2.5, 7], gamma: 0.5}": (lambda i: 0.5 ** sum(epoch(i) >= each for each in (2.5, 7)), None),
            "stepDecay: {milestones: [25, 71], inSteps: true}": (lambda i: 0.1 ** sum(i >= each for each in (25, 71)), None),
            "periodicDecay: {epochs: 1.5, gamma: 0.8}": (lambda i: 0.8 ** (i // 15), None),
            "periodicDecay: {steps: 7, gamma: 0.9}": (lambda i: 0.9 ** (i // 7), None),
            "polynomial: {power: 2, finalFraction: 0.2, steps: 80, afterWarmup: true}, warmup: {linear: {steps: 20, startRate: 0.02}}":
                (lambda i: 0.2 + 0.8 * i / 20 if i < 20 else 0.2 + 0.8 * max(1 - (i - 20) / 60, 0) ** 2, None),
            "warmup: {gradual: {epochs: 4, startRate: 0.02}}": (lambda i: min(0.2 + 0.2 * (i // 10), 1), None),
            "cyclic: {epochs: 4, riseEpochs: 1, power: 2, lowFraction: 0.2}, collapse: {epochs: 2, power: 3, weightDecayFactor: 4}":
                (lambda i: cycle(i) if i < 80 else cycle(80) * (1 - (i - 80) / 20) ** 3, lambda i: 1 if i < 80 else 4),
            "weightDecay: [{epoch: 1, factor: 0.5}, {epoch: 3, factor: 1.5}]":
                (lambda i: 1, lambda i: 0.5 + min(max(epoch(i) - 1, 0), 2) / 2),
        }
        for kind, (rate, decay) in kinds.items():
            trainer = f"optimizer: {{sgd: {{learningRate: 0.1, weightDecay: 0.0005}}}}\nbatch: {{size: 100}}\nepochs: 10\nschedule: {{{kind}}}"
            self.check_points(trainer, 100, lambda i: 0.1 * rate(i), lambda i: 0.0005 * (decay(i) if decay else 1), samples=1000)

    def check_large_batches(self, recipe):
        """Linear scaling, a warm-up and step decay together, as 32 workers with 128 and with 32 samples each have them."""
        for batch, own, warmup in ((4096, 128, "stepping: {epochs: 5}"), (4096, 128, "stepping: {epochs: 10}"),
                                   (4096, 128, "gradual: {epochs: 5, startBatch: 128}"), (1024, 32, "gradual: {epochs: 10, startBatch: 32}")):
            kind, epochs = re.match(r"(\w+): .epochs: (\d+)", warmup).groups()
            target, start, last = 0.1 * batch / 256, 0.1 * own / 256, int(epochs)

            def rate(i):
                epoch = i * batch // self.SAMPLES
                if epoch >= last:
                    return target * 0.1 ** sum(epoch >= milestone for milestone in (30, 60, 80))
                return target * (epoch + 1) / (last + 1) if kind == "stepping" else start + (target - start) / last * epoch
            trainer = recipe.replace("stepping: {epochs: 5}", warmup).replace("4096", str(batch))
            self.check_points(trainer, math.ceil(90 * self.SAMPLES / batch), rate, lambda i: 0.0001)

    @staticmethod
    def caffe(i):
        if i < 446:
            return 0.1 + (4.8 - 0.1) * i / 446
        return 4.8 * (1 - i / 8040) if i < 7638 else 4.8 * (1 - 7638 / 8040) * (1 - (i - 7638) / 402) ** 2

    def test_what_the_docs_put_into_a_manifest_is_valid_there(self):
        for page, least in (("collectives.md", 2), ("communication.md", 2), ("run-a-job.md", 7)):
            parts = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)
            self.assertGreaterEqual(len(parts), least, page)
            for part in parts:
                sets = []
                for group, fields in self.spec_of(yaml.safe_load(part)).items():
                    for field, value in fields.items():
                        sets += ["--set", f"spec.{group}.{field}={json.dumps(value)}"]
                answer = ringmaster(self.folder, "validate", str(CHAR_LM if "text:" in part else DIGITS), *sets)
                self.assertEqual(answer.returncode, 0, f"{page}: {part}{answer.stdout}{answer.stderr}")

    @staticmethod
    def spec_of(part):
        """A page that is about training alone leaves out what its parts stand in."""
        if "spec" in part:
            return part["spec"]
        return part if part.keys() & {"trainer", "checkpoint"} else {"trainer": part}

    def test_every_manifest_of_the_guide_for_those_who_come_from_elsewhere_is_valid(self):
        manifests = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/migrate.md").read_text(), re.DOTALL)
        self.assertGreater(len(manifests), 3)
        for manifest in manifests:
            (self.folder / "job.yaml").write_text(manifest)
            answer = ringmaster(self.folder, "validate", "job.yaml")
            self.assertEqual(answer.returncode, 0, manifest + answer.stdout + answer.stderr)


class ScheduleCommand(RunTest):
    # The recipe of Caffe on 448 nodes, over the digits.
    RECIPE = ["--set", "spec.trainer.optimizer.sgd.learningRate=4.8", "--set", "spec.trainer.schedule={warmup: {linear: {steps: 446, startRate: 0.1}}, "
              "polynomial: {}, collapse: {steps: 402}}", "--set", "spec.trainer.batch.size=14336"]

    def test_a_recipe_is_drawn_on_the_terminal_and_into_a_picture(self):
        answer = ringmaster(self.folder, "schedule", "plot", str(DIGITS), *self.RECIPE, "--set", "spec.trainer.epochs=89.965", "--samples", "1281167",
                            "--svg", "schedule.svg")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertIn("8040 steps: 89.97 epochs of 1281167 samples in batches of 14336", answer.stdout)
        self.assertIn("learning rate: first 0.1, highest 4.78946 at step 445", answer.stdout)
        self.assertIn("weight decay: first 0.0005, highest 0.001 at step 7638", answer.stdout)
        picture = ElementTree.parse(self.folder / "schedule.svg")
        self.assertEqual(len(picture.findall("{http://www.w3.org/2000/svg}polyline")), 2)

    def test_an_epoch_is_as_long_as_the_data_unless_said(self):
        answer = ringmaster(self.folder, "schedule", "plot", str(DIGITS))
        self.assertIn("450 steps: 20.03 epochs of 1438 samples in batches of 64", answer.stdout)
        answer = ringmaster(self.folder, "schedule", "plot", str(DIGITS), "--set", "spec.trainer.data.csv.path=away.csv")
        self.assertEqual(answer.returncode, 66)
        self.assertIn("give --samples where the data is not on this machine", answer.stderr)
        self.assertEqual(ringmaster(self.folder, "schedule").returncode, 64)

    def test_large_batch_optimizers_learn_and_a_group_of_nothing_is_refused(self):
        group = "spec.trainer.optimizer.groups=[{roles: [Bias, Norm], weightDecayFactor: 0, layerWise: false}]"
        for optimizer in ("{lars: {learningRate: 0.1, weightDecay: 0.0005, trust: 0.05}}", "{lamb: {learningRate: 0.02}}", "{adamW: {learningRate: 0.005}}"):
            _, _, accuracy = self.digits(*SHORT, "--set", f"spec.trainer.optimizer={optimizer}", "--set", group, folder=self.fresh_folder()).result()
            self.assertGreater(accuracy, 0.8, optimizer)
        answer = ringmaster(self.fresh_folder(), "run", str(DIGITS), *SHORT, "--set", "spec.trainer.optimizer.groups=[{names: [head.*]}]")
        self.assertEqual(answer.returncode, 2)
        self.assertIn("optimizer.groups[0]: no parameter of the network belongs to it; there are conv1.weight", answer.stdout + answer.stderr)

    def test_each_form_of_momentum_and_decay_and_a_bound_on_gradients_train(self):
        def trained(optimizer):
            digest, _, accuracy = self.digits(*SHORT, "--set", f"spec.trainer.optimizer={optimizer}", folder=self.fresh_folder()).result()
            self.assertGreater(accuracy, 0.8, optimizer)
            return digest
        forms = ("{sgd: {learningRate: 0.05, momentum: 0.9, weightDecay: 0.001}}",
                 "{sgd: {learningRate: 0.05, momentum: 0.9, weightDecay: 0.001, nesterov: true}}",
                 "{sgd: {learningRate: 0.05, momentum: 0.9, weightDecay: 0.001, form: Caffe}}",
                 "{sgd: {learningRate: 0.05, momentum: 0.9, weightDecay: 0.001}, clip: {globalNorm: 1}}",
                 "{sgd: {learningRate: 0.05, momentum: 0.9, weightDecay: 0.001}, clip: {value: 0.05}}")
        self.assertEqual(len(set(map(trained, forms))), len(forms), "each makes other weights")

    def test_a_collapse_that_begins_at_a_rate_of_zero_is_refused(self):
        whole = "spec.trainer.schedule={warmup: {linear: {steps: 10}}, collapse: {epochs: 1000}}"
        answer = ringmaster(self.fresh_folder(), "run", str(DIGITS), *SHORT, "--set", whole)
        self.assertEqual(answer.returncode, 2)
        self.assertIn("schedule.collapse begins at step 0 of", answer.stdout + answer.stderr)


if __name__ == "__main__":
    main()
