#!/usr/bin/env python3
"""The network that a manifest chooses, by name or as a list of layers, as a user sets it."""
import re

from ringmaster_run import ROOT, RunTest, main, ringmaster

DIGITS = ROOT / "examples/digits/job.yaml"
CHAR_LM = ROOT / "examples/char-lm/job.yaml"
RESNET = "spec.trainer.model={zoo: {name: resnet-18, width: 0.125}}"
GPT2 = "spec.trainer.model={zoo: {name: gpt-2, width: 0.1, layers: 2, dropout: 0}}"
LAYERS = """spec.trainer.model={sequential: {layers: [
  {conv2d: {channels: 16, kernel: 3, padding: 2, dilation: 2, bias: false}}, {batchNorm: {}}, {relu: {}},
  {conv2d: {channels: 32, kernel: 3, padding: 1, groups: 16}}, {relu: {}}, {maxPool: {kernel: 2}},
  {conv2d: {channels: 32, kernel: 1}}, {relu: {}}, {adaptiveAveragePool: {size: 3}}, {adaptiveMaxPool: {size: 2}}, {flatten: {}}, {linear: {features: 10}}]}}"""


class Networks(RunTest):
    def trained(self, manifest, *settings, workers=2):
        sets = [argument for setting in settings for argument in ("--set", setting)]
        return self.run_job(manifest, "--workers", str(workers), "--set", "spec.workers.maxReplicas=4", *sets, folder=self.fresh_folder())

    def test_a_small_resnet_reads_digits_with_the_same_bits_on_one_and_two_workers(self):
        settings = (RESNET, "spec.trainer.epochs=8", "spec.trainer.labelSmoothing=0.1")
        runs = [self.trained(DIGITS, *settings, workers=workers) for workers in (1, 2)]
        (weights, _, accuracy), other = (run.result() for run in runs)
        self.assertEqual(weights, other[0])
        self.assertGreater(accuracy, 0.8)
        self.assertIn("resnet-18, ", runs[0].text())

    def planned_bytes(self, manifest, *settings):
        sets = [argument for setting in settings for argument in ("--set", setting)]
        answer = ringmaster(self.folder, "explain", "graph", str(manifest), "--out", "plan", *sets)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        words = (self.folder / "plan/3-plan.txt").read_text().split()  # "arena: 12,288 bytes, ..."
        return int(words[1].replace(",", ""))

    def test_a_step_with_less_memory_trains_the_same_weights(self):
        steps = "spec.trainer.steps=20"
        whole = self.planned_bytes(CHAR_LM, steps)
        budget = whole * 9 // 10
        less = f"spec.trainer.stepMemoryBytes={budget}"
        self.assertLessEqual(self.planned_bytes(CHAR_LM, steps, less), budget)
        self.assertIn("again/", (self.folder / "plan/3-plan.txt").read_text())
        self.assertEqual(self.trained(CHAR_LM, steps).result(), self.trained(CHAR_LM, steps, less).result())

    def test_a_step_that_cannot_do_with_so_little_memory_is_refused_with_numbers(self):
        answer = ringmaster(self.folder, "explain", "graph", str(DIGITS), "--set", "spec.trainer.stepMemoryBytes=1000")
        self.assertNotEqual(answer.returncode, 0)
        needs = "the budget is 1,000, for a shard of 16 samples; allow more, or cut the batch into more shards"
        self.assertIn(needs, answer.stderr)
        run = self.trained(DIGITS, "spec.trainer.stepMemoryBytes=1000")
        self.assertEqual(run.wait(), 2, run.text())
        self.assertIn(needs, run.text())
        status = run.job()["status"]
        self.assertEqual((status["round"], status["restarts"]["byCause"]), (0, {"Code": 1}), "another try would end the same way")

    def test_workers_that_have_room_alone_but_not_beside_each_other_are_refused_before_their_first_step(self):
        def refused(channels, workers):
            layers = f"{{conv2d: {{channels: {channels}, kernel: 1}}}}, {{relu: {{}}}}, {{adaptiveAveragePool: {{size: 1}}}}, {{flatten: {{}}}}, {{linear: {{features: 10}}}}"
            run = self.trained(DIGITS, f"spec.trainer.model={{sequential: {{layers: [{layers}]}}}}", "spec.trainer.batch={size: 1024, shards: 4}",
                               "spec.restart.outOfMemory=0", workers=workers)
            self.assertEqual(run.wait(), 2, run.text())
            return run.text()

        def gigabytes(pattern, text):
            self.assertRegex(text, pattern)
            return tuple(map(float, re.search(pattern, text).groups()))

        channels = 1 << 24  # a terabyte
        text = refused(channels, 1)
        needed, available = gigabytes(r"the model needs at least ([0-9.]+) GB of memory, (?:its container has a limit of )?([0-9.]+) GB", text)
        self.assertRegex(text, r": [0-9.]+ GB for weights and gradients of [0-9,]+ parameters, [0-9.]+ .B for what the optimizer keeps, "
                               r".*, [0-9.]+ GB for the values of a shard of 256 samples, the largest of which is conv2d1 .*, [0-9.]+ GB; ")
        text = refused(int(channels * 0.7 * available / needed), 2)
        together, left = gigabytes(r"workers 0, 1 need ([0-9.]+) GB more of memory together, their \w+ has ([0-9.]+) GB left; start fewer workers there", text)
        self.assertGreater(together, left)
        self.assertLess(together / 2, left)

    def test_a_gpt2_of_two_layers_learns_to_write(self):
        _, steps, accuracy = self.trained(CHAR_LM, GPT2, "spec.trainer.steps=40").result()
        self.assertEqual(steps, 40)
        self.assertGreater(accuracy, 0.16)  # a blank alone is 15 % of the text

    def test_a_list_of_layers_that_dilates_groups_and_pools_to_a_size_reads_digits(self):
        _, _, accuracy = self.trained(DIGITS, LAYERS, "spec.trainer.epochs=5").result()
        self.assertGreater(accuracy, 0.8)

    def test_digits_that_are_enlarged_and_seen_in_part_are_learnt_with_the_same_bits_on_one_and_two_workers(self):
        images = "spec.trainer.data.images={size: [12, 12], resize: Cubic, crop: {minArea: 0.6}, mean: [0.3], deviation: [0.4]}"
        settings = (images, "spec.trainer.epochs=5", "spec.trainer.schedule={collapse: {epochs: 1, wholeImages: true}}")
        (weights, _, accuracy), other = (self.trained(DIGITS, *settings, workers=workers).result() for workers in (1, 2))
        self.assertEqual(weights, other[0])
        self.assertGreater(accuracy, 0.9)

    def test_digits_are_learnt_by_each_loss(self):
        likelihood = ("spec.trainer.loss=NegativeLogLikelihood", LAYERS.replace("{linear: {features: 10}}", "{linear: {features: 10}}, {logSoftmax: {}}"))
        square = ("spec.trainer.loss=MeanSquare", "spec.trainer.model.zoo.batchNormMomentum=0.8")  # which takes its time
        for settings, epochs, least in ((likelihood, 5, 0.8), (square, 8, 0.6)):
            _, _, accuracy = self.trained(DIGITS, *settings, f"spec.trainer.epochs={epochs}").result()
            self.assertGreater(accuracy, least)

    def test_a_network_that_does_not_fit_is_refused_before_anything_starts(self):
        for manifest, setting, words in (
                (DIGITS, "spec.trainer.model.zoo.name=resnet-19", '"resnet-19" is not one of lenet, lenet-bn, '),
                (DIGITS, "spec.trainer.model.zoo={name: alexnet}", "shape: images of [1, 8, 8] are too small for alexnet"),
                (DIGITS, "spec.trainer.model.zoo={name: resnet-18, layers: 3}", "spec.trainer.model.zoo.layers: the number of resnet-18's"),
                (DIGITS, GPT2, "spec.trainer.data: gpt-2 reads text"),
                (CHAR_LM, RESNET, "spec.trainer.data: text is read by"),
                (DIGITS, LAYERS.replace("kernel: 2", "kernel: 9"), "layers[5].maxPool.kernel: a window of 9 by 9 does not fit into [32, 8, 8]"),
                (DIGITS, LAYERS.replace("maxPool", "maximumPool"), "layers[5].maximumPool: unknown field"),
                (DIGITS, LAYERS.replace("{maxPool: {kernel: 2}}", "{}"), "layers[5]: set exactly one of conv2d, maxPool, averagePool, linear, batchNorm, "),
                (DIGITS, "spec.trainer.loss=NegativeLogLikelihood", "spec.trainer.loss: NegativeLogLikelihood takes log-probabilities"),
                (DIGITS, "spec.trainer.model.zoo={name: lenet, batchNormMomentum: 0.8}", "batchNormMomentum: lenet has no batch norm: leave it out"),
                (DIGITS, "spec.trainer.data.images={size: [8]}", "spec.trainer.data.images.size: give two numbers, the height and the width"),
                (CHAR_LM, "spec.trainer.data.images={mirror: true}", "spec.trainer.data.images: text has no images; leave it out"),
                (DIGITS, "spec.trainer.labelSmoothing=1", "spec.trainer.labelSmoothing: 1 is more than 0.99")):
            for command in ("run", "validate"):
                answer = ringmaster(self.folder, command, str(manifest), "--set", setting)
                self.assertEqual(answer.returncode, 65, answer.stdout + answer.stderr)
                self.assertIn(words, answer.stderr)
        self.assertFalse((self.folder / ".ringmaster").exists(), "nothing was started")


if __name__ == "__main__":
    main()
