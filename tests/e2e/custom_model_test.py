#!/usr/bin/env python3
"""A user writes a trainer with parts of their own, as examples/custom-model/README.md says: installs, builds out of tree, runs."""
import os
import re
import signal
import subprocess

from own_project import SANITIZER, OwnProjectTest
from ringmaster_run import main, wait_until

# Long enough to lose a worker in its middle.
LONG = ["--set", f"spec.trainer.epochs={60 if SANITIZER else 200}", "--set", "spec.checkpoint.everySteps=200"]


def needed_libraries(program):
    answer = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"^\s*(\S+) =>", answer, re.MULTILINE))


class CustomModel(OwnProjectTest):
    example = "custom-model"

    def train(self, *arguments):
        return self.run_job(self.project / "job.yaml", *arguments, folder=self.fresh_folder(), command=str(self.prefix / "bin/ringmaster"))

    def test_a_trainer_of_ones_own_keeps_what_ringmaster_promises(self):
        self.assertLess(len((self.project / "trainer.cc").read_text().splitlines()), 60, "a network, a data set and an optimizer, as docs/custom-model.md says")
        self.build()
        self.check_what_is_installed()
        program = self.project / "build/spirals-trainer"
        self.assertRegex(self.succeed(program, "--help"),
                         r"(?s)usage: spirals-trainer.*networks: residual-mlp\ndata sets: spirals\noptimizers: signum\n")
        self.check_bits()
        self.check_groups()
        self.check_errors()
        self.succeed(self.prefix / "bin/ringmaster", "explain", "graph", self.project / "job.yaml")
        self.assertIn("block3", (self.folder / "graph/3-plan.txt").read_text())
        self.succeed(self.prefix / "bin/ringmaster", "explain", "profile", self.project / "job.yaml")
        self.assertRegex((self.folder / "profile/profile.txt").read_text(), r"(?s)^residual-mlp, .*block3")
        self.assertIn("block3", (self.folder / "profile/trace.json").read_text())

    def check_what_is_installed(self):
        """Nothing that a user's own names could clash with, and no library that the worker's image lacks."""
        self.assertEqual(sorted(path.name for path in (self.prefix / "include").iterdir()), ["ringmaster"])
        self.assertEqual(sorted(path.name for path in self.prefix.glob("lib*/*ringmaster*")),
                         ["libringmaster.so", "libringmaster.so.0.1", "libringmaster.so.0.1.0"])
        library = next(self.prefix.glob("lib*/libringmaster.so"))
        self.assertLessEqual(needed_libraries(library), needed_libraries(self.prefix / "bin/ringmaster-train"))

    def check_bits(self):
        alone = self.train(*LONG, "--workers", "1", "--set", "spec.workers.maxReplicas=2").result()
        self.assertGreater(alone[2], 0.95, "it learns")
        self.assertEqual(self.train(*LONG).result(), alone)
        run = self.train(*LONG)
        run.wait_for_step(450, name="spirals")
        os.kill(run.workers(program="spirals-trainer")[1], signal.SIGKILL)
        wait_until(lambda: not run.running() or run.job("spirals")["status"].get("restarts", {}).get("total"), "the incident")
        self.assertEqual(run.result(), alone)
        self.assertIn("Round 2", run.text())

    def check_groups(self):
        """The example's optimizer heeds what of the manifest is only handed to it."""
        def weights(*sets, epochs=1):
            values = [f"spec.trainer.epochs={epochs}", *("spec.trainer.optimizer." + value for value in sets)]
            return self.train(*(word for value in values for word in ("--set", value))).result()[0]
        still = 'groups=[{names: ["*"], learningRateFactor: 0}]'
        self.assertEqual(weights(still), weights(still, epochs=2))
        plain, decay = weights(), "custom.weightDecay=0.1"
        self.assertNotEqual(weights(decay), plain)
        self.assertEqual(weights(decay, 'groups=[{names: ["*"], weightDecayFactor: 0}]'), plain)

    def check_errors(self):
        def fails_with(pattern, *sets):
            run = self.train(*(word for value in sets for word in ("--set", value)))
            self.assertEqual(run.wait(), 2, run.text())
            self.assertRegex(run.text(), pattern)
            self.assertNotIn("Round 1", run.text())
        custom = "spec.trainer.{}.custom.{}"
        fails_with(r"settings\.widht: unknown setting; there are blocks, width", custom.format("model", "settings.widht=8"))
        fails_with(r'layer "in": |parameter "in.weight": every extent must be at least 1, got \[0, 2\]',
                   custom.format("model", "settings.width=0"))
        fails_with(r"data set \"spirals\": no samples to train on; at least 1 is needed", custom.format("data", "settings.points=0"))
        fails_with(r'this trainer knows no optimizer "sgd"; it knows signum', custom.format("optimizer", "name=sgd"))
        fails_with(r"project/build/no-such-trainer: No such file or directory", "spec.trainer.program=build/no-such-trainer")


if __name__ == "__main__":
    main()
