#!/usr/bin/env python3
"""What is measured on the held-out samples, and what a manifest makes of it: an early end, the best checkpoint kept."""
import csv
import json
import math
import os
import shutil
import signal

from ringmaster_run import ROOT, RunTest, main, ringmaster

DIGITS = ROOT / "examples/digits/job.yaml"
CHAR_LM = ROOT / "examples/char-lm/job.yaml"
# Far from its last step the loss on the held-out digits has stopped falling.
# A network so wide that a worker can be killed on the way, however fast the machine is.
EARLY = ("spec.trainer.epochs=100", "spec.trainer.evaluation.earlyStop={patience: 4}", "spec.workers.maxReplicas=4", "spec.trainer.model.zoo.width=4")
BEST = ("spec.checkpoint.keep=1", "spec.checkpoint.keepBest=true", "spec.checkpoint.everySteps=10")


class Evaluation(RunTest):
    def trained(self, manifest, *settings, workers=2):
        sets = [argument for setting in settings for argument in ("--set", setting)]
        return self.run_job(manifest, "--workers", str(workers), *sets, folder=self.fresh_folder())

    def test_training_stops_early_at_the_same_step_however_many_workers_there_are_and_whoever_dies(self):
        disturbed = self.trained(DIGITS, *EARLY, *BEST, workers=3)
        disturbed.wait_for_step(60)
        os.kill(disturbed.workers()[1], signal.SIGKILL)
        expected = self.trained(DIGITS, *EARLY, workers=1).result()
        self.assertEqual(disturbed.result(), expected)
        _, steps, _ = expected
        self.assertLess(steps, 2000)  # of 2,247
        why = f"Training stopped early, after {steps} steps: the loss has not fallen in 4 evaluations, since step "
        self.assertIn(why, disturbed.text())
        status = disturbed.job()["status"]
        self.assertEqual((status["state"], status["restarts"]["total"]), ("Succeeded", 1))
        self.assertIn("the loss has not fallen", status["result"]["stoppedEarly"])
        self.assertEqual(status["progress"]["step"], steps)
        self.check_best_checkpoint(disturbed, status)

    def check_best_checkpoint(self, run, status):
        best = status["bestCheckpoint"]
        newest, kept = status["checkpoints"]  # keep: 1, and the best
        self.assertEqual((newest["step"], kept["step"]), (status["result"]["steps"], best["step"]))
        self.assertLess(best["step"], newest["step"])
        self.assertEqual((best["metric"], kept["metricValue"]), ("Loss", best["value"]))
        self.assertLess(best["value"], newest["metricValue"])
        self.assertEqual(newest["metricValue"], status["result"]["evaluation"]["loss"])
        files = sorted(path.name for path in (run.folder / ".ringmaster/digits/checkpoints").iterdir() if path.is_file())
        for step in (best["step"], newest["step"]):
            self.assertEqual(sum(name.startswith(f"step-{step}-round-") for name in files), 3, files)
        self.assertEqual(len(files), 6, files)
        self.assertIn(f"checkpoint of step {newest['step']} and the best, of step {best['step']}, in ", run.text())

    def test_two_classes_have_an_auroc_that_does_not_depend_on_the_workers(self):
        folder = self.digits_with(["large"], lambda digit: [int(digit >= 5)])
        settings = ("spec.trainer.data.csv.classes=2", "spec.trainer.epochs=3", "spec.trainer.evaluation.metric=AUROC", "spec.workers.maxReplicas=4")
        measured = []
        for workers in (1, 3):
            run = self.trained(folder / "job.yaml", *settings, workers=workers)
            run.result()
            measured.append(run.job()["status"]["result"]["evaluation"])
        self.assertEqual(measured[0], measured[1])
        self.assertTrue(0.9 < measured[0]["auroc"] <= 1, measured)
        self.assertNotIn("top5Accuracy", measured[0])
        self.assertIn(f"   AUROC {measured[0]['auroc']:.3f}", run.text().splitlines()[-2])

    def test_several_labels_a_sample_have_an_auroc_each(self):
        labels = {"odd": lambda digit: digit % 2, "large": lambda digit: int(digit >= 5), "round": lambda digit: int(digit in (0, 6, 8, 9))}
        folder = self.digits_with(labels.keys(), lambda digit: [label(digit) for label in labels.values()])
        settings = ("spec.trainer.data.csv={path: digits.csv, labels: 3, shape: [1, 8, 8], scale: 16}", "spec.trainer.epochs=5", "spec.workers.maxReplicas=4")
        runs = [self.trained(folder / "job.yaml", *settings, workers=workers) for workers in (1, 3)]
        self.assertEqual(*(run.result() for run in runs))
        first, second = (run.job()["status"]["result"] for run in runs)
        self.assertEqual((first["evaluation"], first["labels"]), (second["evaluation"], second["labels"]))
        self.assertEqual([label["name"] for label in first["labels"]], list(labels))
        for label in first["labels"]:
            self.assertTrue(0.9 < label["auroc"] <= 1, first)
        self.assertAlmostEqual(first["evaluation"]["auroc"], sum(label["auroc"] for label in first["labels"]) / 3)
        self.assertGreater(first["evaluation"]["accuracy"], 0.8)
        kept = f".ringmaster/{runs[0].job()['metadata']['name']}/checkpoints"
        sets = [argument for setting in settings for argument in ("--set", setting)]
        answer = ringmaster(runs[0].folder, "evaluate", str(folder / "job.yaml"), kept, kept, "--json", *sets)
        report = json.loads(answer.stdout)
        for one in (*report["models"], report["mean"]):
            self.assertEqual(one["labels"], first["labels"])
            self.assertEqual(one["accuracy"], first["evaluation"]["accuracy"])
        self.assertAlmostEqual(report["mean"]["loss"], first["evaluation"]["loss"], places=6)

    def test_a_densenet_learns_fourteen_labels_a_sample(self):
        labels = {f"digit-{one}": lambda digit, one=one: int(digit == one) for one in range(10)}
        labels.update({f"over-{bound}": lambda digit, bound=bound: int(digit > bound) for bound in (1, 3, 5, 7)})
        folder = self.digits_with(labels.keys(), lambda digit: [label(digit) for label in labels.values()])
        run = self.trained(folder / "job.yaml", "spec.trainer.data.csv={path: digits.csv, labels: 14, shape: [1, 8, 8], scale: 16}",
                           "spec.trainer.data.images={size: [32, 32]}", "spec.trainer.model={zoo: {name: densenet-121, width: 0.25}}", "spec.trainer.epochs=2")
        run.result()
        result = run.job()["status"]["result"]
        self.assertEqual([label["name"] for label in result["labels"]], list(labels))
        self.assertGreater(result["evaluation"]["auroc"], 0.8)
        self.assertAlmostEqual(result["evaluation"]["auroc"], sum(label["auroc"] for label in result["labels"]) / 14)

    def digits_with(self, names, labels_of):
        """A folder with the digits example whose samples have other labels."""
        folder = self.fresh_folder()
        shutil.copy(DIGITS, folder / "job.yaml")
        with open(ROOT / "examples/digits/digits.csv") as old, open(folder / "digits.csv", "w", newline="") as new:
            rows, writer = csv.reader(old), csv.writer(new)
            writer.writerow([*names, *next(rows)[1:]])
            writer.writerows([*labels_of(int(row[0])), *row[1:]] for row in rows)
        return folder

    def test_text_has_a_perplexity(self):
        run = self.trained(CHAR_LM, "spec.trainer.steps=40")
        run.result()
        evaluation = run.job("char-lm")["status"]["result"]["evaluation"]
        self.assertAlmostEqual(evaluation["perplexity"], math.exp(evaluation["loss"]))
        self.assertTrue(evaluation["accuracy"] < evaluation["top5Accuracy"] < 1)
        self.assertIn(f"   perplexity {evaluation['perplexity']:.4g}", run.text())
        self.assertIn(f"perplexity={evaluation['perplexity']:.4f}", ringmaster(run.folder, "logs", "char-lm", "--worker", "0").stdout)

    def test_what_cannot_be_measured_is_refused_before_anything_starts(self):
        for setting, words in (
                ("spec.trainer.evaluation.metric=Perplexity", "spec.trainer.evaluation.metric: Perplexity is measured on text alone"),
                ("spec.trainer.evaluation.metric=Auroc", '"Auroc" is not one of Loss, Accuracy, Top5, Perplexity, AUROC'),
                ("spec.trainer.evaluation.earlyStop={}", "spec.trainer.evaluation.earlyStop.patience: "),
                ("spec.trainer.evaluation={everyEpochs: 0, earlyStop: {patience: 1}}", "spec.trainer.evaluation.earlyStop: needs evaluations on the way"),
                ("spec.trainer.evaluation={earlyStop: {patience: 1, minDelta: -1}}", "earlyStop.minDelta: -1 is less than 0")):
            for command in ("run", "validate"):
                answer = ringmaster(self.folder, command, str(DIGITS), "--set", setting)
                self.assertEqual(answer.returncode, 65, answer.stdout + answer.stderr)
                self.assertIn(words, answer.stderr)
        self.assertFalse((self.folder / ".ringmaster").exists(), "nothing was started")


class SavedWeights(RunTest):
    def test_they_are_as_right_as_their_job_has_measured_and_so_is_the_mean_of_what_several_predict(self):
        folder = self.fresh_folder()
        kept = folder / "kept"
        run = self.digits("--set", f"spec.checkpoint={{directory: {kept}, everySteps: 45, everySeconds: 0, keep: 2}}", "--workers", "2", folder=folder)
        run.result()
        measured = run.job()["status"]["result"]["evaluation"]

        def evaluated(*arguments):
            answer = ringmaster(folder, "evaluate", str(DIGITS), *arguments)
            self.assertEqual(answer.returncode, 0, answer.stderr)
            return answer.stdout
        alone = json.loads(evaluated("kept", "--json"))
        (model,) = alone["models"]
        self.assertEqual(model.pop("name"), "kept, step 450")
        self.assertEqual(model, {name: measured[name] for name in ("loss", "accuracy", "top5Accuracy")})
        self.assertNotIn("mean", alone)
        three = json.loads(evaluated("kept@405", "kept@450", "kept", "--json"))
        losses = [model["loss"] for model in three["models"]]
        self.assertEqual(losses[1:], [measured["loss"]] * 2)
        # A logarithm of a mean is more than the mean of the logarithms.
        self.assertLess(three["mean"]["loss"], sum(losses) / 3)
        self.assertNotAlmostEqual(three["mean"]["loss"], losses[0], places=6)
        self.assertNotAlmostEqual(three["mean"]["loss"], losses[2], places=6)
        twice = json.loads(evaluated("kept", "kept", "--json"))["mean"]
        self.assertAlmostEqual(twice["loss"], losses[2], places=6)
        self.assertEqual({name: twice[name] for name in ("accuracy", "top5Accuracy")}, {name: measured[name] for name in ("accuracy", "top5Accuracy")})
        shutil.copytree(os.fsencode(kept), os.fsencode(folder) + b"/k\xff")
        self.assertEqual(json.loads(evaluated(b"k\xff", "--json"))["models"][0]["loss"], measured["loss"])
        self.assertRegex(evaluated("kept@405", "kept"), r"^weights +loss +accuracy.*\nkept, step 405 +0\..*\nkept, step 450 +0\..*\nmean of 2 +0\..*\n$")

    def test_what_is_not_there_or_another_networks_is_said(self):
        folder = self.fresh_folder()
        self.digits("--set", f"spec.checkpoint.directory={folder / 'kept'}", "--set", "spec.trainer.epochs=1", folder=folder).result()
        (folder / "torn.safetensors").write_text("torn")
        for arguments, code, words in (
                (("nowhere",), 66, "nowhere: there is no such file or directory"),
                (("torn.safetensors",), 66, "torn.safetensors: "),
                (("torn.safetensors@3",), 65, "torn.safetensors: is a file, which has no steps"),
                (("kept@7",), 66, "kept: holds no whole checkpoint of step 7; it has 23"),
                (("kept", "--set", "spec.trainer.model.zoo={name: resnet-18}"), 65, "kept: it was written for a network whose conv1.weight has another shape"),
                (("kept", "--set", "spec.trainer.data.csv.holdOutEvery=0"), 65, "holds out no samples"),
                ((), 64, "saved is required")):
            answer = ringmaster(folder, "evaluate", str(DIGITS), *arguments)
            self.assertEqual(answer.returncode, code, answer.stdout + answer.stderr)
            self.assertIn(words, answer.stderr)


if __name__ == "__main__":
    main()
