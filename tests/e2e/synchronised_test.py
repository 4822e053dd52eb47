#!/usr/bin/env python3
"""Batch norm over the whole batch of a step, `spec.trainer.model.batchNorm: Synchronised`, as a user sets it."""
import os
import pathlib
import re
import signal

from ringmaster_run import LONG_EPOCHS, ROOT, SHORT, RunTest, main, ringmaster, wait_until

DIGITS = ROOT / "examples/digits/job.yaml"
MANY_LOSSES = ["--set", "spec.restart.code=100", "--set", "spec.restart.unknown=100", "--set", "spec.restart.outOfMemory=100"]
SYNCHRONISED = ["--set", "spec.trainer.model.batchNorm=Synchronised"]


class SynchronisedBatchNorm(RunTest):
    def test_one_two_and_four_workers_train_the_same_weights_and_others_than_with_shards_own_statistics(self):
        four_at_most = [*SHORT, "--set", "spec.workers.maxReplicas=4"]
        results = [self.digits(*four_at_most, *SYNCHRONISED, "--workers", workers, folder=self.fresh_folder()).result() for workers in ("1", "2", "4")]
        self.assertEqual(results, [results[0]] * 3)
        self.assertGreater(results[0][2], 0.8)
        self.assertNotEqual(results[0][0], self.undisturbed(*SHORT)[0])

    def test_workers_killed_while_others_wait_for_their_sums_change_no_bit(self):
        run_on = [*SYNCHRONISED, "--set", f"spec.trainer.epochs={3 * LONG_EPOCHS}", "--set", "spec.checkpoint.everySteps=10"]
        expected = self.digits(*run_on, folder=self.fresh_folder()).result()
        run = self.digits(*run_on, *MANY_LOSSES)
        for losses in range(1, 11):  # a gradient's sum may be what they wait for, but not often
            run.wait_for_step(run.step() + 20)
            self.stop_and_kill(wait_until(lambda: run.workers().get(losses % 4), "the next worker"))
            wait_until(lambda: run.job()["status"].get("restarts", {}).get("total", 0) >= losses, "the loss to be seen")
            if losses >= 3 and self.somebody_waited_at_a_batch_norm():
                break
        else:
            self.fail(f"no worker was lost while others waited at a batch norm:\n{run.text()}")
        self.assertEqual(run.result(), expected, run.text())

    def somebody_waited_at_a_batch_norm(self):
        logs = [path.read_text() for path in (self.folder / ".ringmaster/digits/logs").iterdir()]
        return re.search(r"round lost.*all_shards", "".join(logs)) is not None

    def stop_and_kill(self, pid):
        """A stopped worker comes to no sum any more: its peers wait for it, at a batch norm most of the time."""
        os.kill(pid, signal.SIGSTOP)
        try:
            wait_until(lambda: re.search(r"^State:\s+T", pathlib.Path(f"/proc/{pid}/status").read_text(), re.MULTILINE), f"{pid} to stand")
        finally:
            os.kill(pid, signal.SIGKILL)

    def test_validate_says_what_it_normalises_over(self):
        answer = ringmaster(self.folder, "validate", str(DIGITS), *SYNCHRONISED)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertIn("batch norm normalises over the 64 samples of the batch; a worker holds the values of all of its shards at once\n", answer.stdout)

    def test_a_network_without_batch_norm_and_another_word_are_refused_before_anything_starts(self):
        for settings, words in (
                (["spec.trainer.model.batchNorm=Synchronised", "spec.trainer.model.zoo={name: vgg-16}"],
                 "spec.trainer.model.batchNorm: vgg-16 has no batch norm: leave it out"),
                (["spec.trainer.model.batchNorm=Global"], '"Global" is not one of PerShard, Synchronised')):
            sets = [argument for setting in settings for argument in ("--set", setting)]
            for command in ("run", "validate"):
                answer = ringmaster(self.folder, command, str(DIGITS), *sets)
                self.assertEqual(answer.returncode, 65, answer.stdout + answer.stderr)
                self.assertIn(words, answer.stderr)
        self.assertFalse((self.folder / ".ringmaster").exists(), "nothing was started")


if __name__ == "__main__":
    main()
