#!/usr/bin/env python3
"""The `ringmaster explain` commands as their user meets them: what they write, and what they refuse."""
import json
import re
import subprocess
from pathlib import Path
from xml.etree import ElementTree

from ringmaster_run import ROOT, RunTest, main, ringmaster

DIGITS = ROOT / "examples/digits/job.yaml"


class ExplainCollectivesCommand(RunTest):
    def test_links_within_a_node_are_measured_where_that_is_asked_for(self):
        def explain(*arguments):
            answer = ringmaster(self.folder, "explain", "collectives", "--json", *arguments)
            self.assertEqual(answer.returncode, 0, answer.stderr)
            return json.loads(answer.stdout)
        told, measured = explain("--ranks", "4", "--nodes", "2", "--gbit", "25"), explain("--ranks", "4", "--nodes", "2", "--gbit", "25", "--measure")
        self.assertEqual(told["between"], measured["between"])
        self.assertNotEqual(told["within"], measured["within"])
        self.assertIn("measured here", measured["source"])
        self.assertEqual(explain("--ranks", "2", "--measure")["nodes"], 1)

    def test_the_algorithm_that_a_variable_names_is_explained(self):
        def explain(algorithm):
            return ringmaster(self.folder, "explain", "collectives", "--ranks", "4", "--json", env={"RINGMASTER_COLLECTIVE_ALGORITHM": algorithm})
        self.assertEqual(json.loads(explain("auto").stdout)["forced"], "auto")
        self.assertEqual(json.loads(explain("double-tree").stdout)["forced"], "double-tree")
        wrong = explain("rings")
        self.assertNotEqual(wrong.returncode, 0)
        self.assertIn("RINGMASTER_COLLECTIVE_ALGORITHM", wrong.stderr)

    def test_links_that_this_machine_does_not_have_cannot_be_measured(self):
        answer = ringmaster(self.folder, "explain", "collectives", "--ranks", "4", "--nodes", "4", "--measure")
        self.assertEqual(answer.returncode, 64)
        self.assertIn("a node of 1 rank; of 2 to 64 the links can be measured on this machine", answer.stderr)


class ExplainGraphCommand(RunTest):
    def explain(self, manifest, *arguments):
        return ringmaster(self.folder, "explain", "graph", str(manifest), *arguments)

    def test_every_stage_is_written_as_text_and_for_graphviz(self):
        answer = self.explain(DIGITS, "--out", "made/here", "--set", "spec.trainer.batch.shards=8")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertIn("made/here", answer.stdout)
        text = {path.name: path.read_text() for path in (self.folder / "made/here").iterdir()}
        passes = [f"2.{place:02}-{name}" for place, name in enumerate(
            ("FoldConstants", "Simplify", "MergeEqualNodes", "DelayPoolGrads", "FuseRelu", "FuseActivation", "ChooseLayouts", "FuseResidualGrad", "FuseReluGrad", "FuseConvNorm", "FuseNormMaxPool", "KeepTaps", "FuseMaxPool"), start=1)]
        self.assertEqual(sorted(text), [stage + end for stage in ("1-model", "2-gradients", *passes, "3-plan", "4-evaluation") for end in (".dot", ".txt")])
        self.assertIn(": relu(", text["2.03-MergeEqualNodes.txt"])
        self.assertNotIn(": relu(", text["2.05-FuseRelu.txt"])
        self.assertIn("input inputs: f32[8, 1, 8, 8]\n", text["1-model.txt"])
        self.assertIn(": conv2d(inputs, conv1.weight)", text["1-model.txt"])
        self.assertNotIn("grad/", text["1-model.txt"])
        self.assertIn("output gradient/conv1.weight = ", text["2-gradients.txt"])
        self.assertRegex(text["3-plan.txt"], r"^arena: [0-9,]+ bytes, [0-9,]+ without reuse\nreorders of images: .*\n(    .*\n)*reorders of images within other steps: .*\n(    .*\n)*0 \S+: \S+ by \S+\n    %\d+ f32\[")
        self.assertRegex(text["4-evaluation.txt"], r"^arena: [0-9,]+ bytes, [0-9,]+ without reuse\n")
        self.assertNotIn("grad/", text["4-evaluation.txt"])
        for name in ("1-model", "2-gradients", "3-plan", "4-evaluation"):
            drawing = subprocess.run(["dot", "-Tsvg"], input=text[f"{name}.dot"], capture_output=True, text=True, timeout=60)
            self.assertEqual((drawing.returncode, drawing.stderr), (0, ""), name)
            self.assertIn("conv1", "".join(ElementTree.fromstring(drawing.stdout).itertext()), name)

    def test_an_evaluation_normalises_where_convolutions_write_and_training_does_not(self):
        if "avx2" not in Path("/proc/cpuinfo").read_text():
            self.skipTest("no kernel of ours takes both where there are no such vectors")
        layers = "{conv2d: {channels: 64, kernel: 3, padding: 1, bias: false}}, {batchNorm: {}}, {relu: {}}"
        model = f"spec.trainer.model={{sequential: {{layers: [{layers}, {layers}, {{flatten: {{}}}}, {{linear: {{features: 10}}}}]}}}}"
        answer = self.explain(DIGITS, "--out", "plan", "--set", model)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        training, evaluation = ((self.folder / f"plan/{stage}.txt").read_text() for stage in ("3-plan", "4-evaluation"))
        self.assertIn(": batch_norm by vector/", training)
        self.assertIn(": conv2d_batch_norm by vector/", evaluation)
        self.assertNotIn(": relu by", evaluation)

    def test_linear_layers_take_the_activations_behind_them(self):
        activations = ("tanh", "sigmoid", "gelu", "exactGelu", "silu", "relu")
        layers = ", ".join(f"{{linear: {{features: 32}}}}, {{{name}: {{}}}}" for name in activations)
        answer = self.explain(DIGITS, "--out", "plan", "--set", f"spec.trainer.model={{sequential: {{layers: [{{flatten: {{}}}}, {layers}, {{linear: {{features: 10}}}}]}}}}")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        training, evaluation = ((self.folder / f"plan/{stage}.txt").read_text() for stage in ("3-plan", "4-evaluation"))
        self.assertEqual(evaluation.count(": linear by "), len(activations) + 1)
        # Whose gradients read what they are of, which a linear layer keeps then.
        self.assertEqual(training.count(": linear_activation by "), 3)
        self.assertEqual(training.count(": linear by "), len(activations) + 1 - 3)
        for plan in (training, evaluation):
            self.assertNotRegex(plan, ": (tanh|sigmoid|gelu|exact_gelu|silu|relu) by ")

    def test_without_held_out_samples_no_evaluation_is_explained(self):
        answer = self.explain(DIGITS, "--out", "plan", "--set", "spec.trainer.data.csv.holdOutEvery=0")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertTrue((self.folder / "plan/3-plan.txt").exists())
        self.assertFalse((self.folder / "plan/4-evaluation.txt").exists())

    def test_a_bound_on_vectors_is_heeded_by_the_kernels_of_the_plan(self):
        def explain(vectors):
            return ringmaster(self.folder, "explain", "graph", str(DIGITS), "--out", "plan", env={"RINGMASTER_MAX_VECTORS": vectors})
        self.assertEqual(explain("avx2").returncode, 0)
        plan = (self.folder / "plan/3-plan.txt").read_text()
        self.assertRegex(plan, r"conv2d by \S+")
        self.assertNotRegex(plan, "avx512|vector/direct|vector/amx")
        wrong = explain("wide")
        self.assertEqual(wrong.returncode, 64, wrong.stderr)
        self.assertIn("RINGMASTER_MAX_VECTORS: 'wide' is not one of avx2, avx512", wrong.stderr)

    def test_what_cannot_be_explained_is_said(self):
        answer = self.explain("nowhere.yaml")
        self.assertEqual((answer.returncode, answer.stdout), (66, ""))
        (self.folder / "file").write_text("")
        answer = self.explain(DIGITS, "--out", "file/below")
        self.assertNotEqual(answer.returncode, 0)
        self.assertIn("file/below", answer.stderr)
        foreign = self.folder / "foreign.yaml"
        foreign.write_text(json.dumps({"apiVersion": "training.ringmaster.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "foreign"},
                                       "spec": {"workers": {"template": {"spec": {"containers": [{"name": "w", "command": ["true"]}]}}}}}))
        answer = self.explain(foreign)
        self.assertEqual(answer.returncode, 65)
        self.assertIn("without spec.trainer the network is the program's own", answer.stderr)


class ExplainProfileCommand(RunTest):
    def explain(self, manifest, *arguments):
        return ringmaster(self.folder, "explain", "profile", str(manifest), *arguments)

    def test_a_table_of_all_ops_and_a_trace_of_a_few_steps_are_written(self):
        answer = self.explain(DIGITS, "--out", "made/here", "--set", "spec.trainer.batch.shards=8")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertIn("profile.txt and trace.json, for ui.perfetto.dev or chrome://tracing, are in made/here", answer.stdout)
        self.assertFalse((self.folder / ".ringmaster").exists(), "nothing was run as a job")
        text = (self.folder / "made/here/profile.txt").read_text()
        self.assertRegex(text, r"^lenet-bn, [0-9,]+ parameters: batch 64 in 8 shards, 1 thread\na step of one worker takes [0-9.]+ .?s \(mean of [0-9,]+\)")
        forward, backward, beside = re.search(r"\nforward\n(.*)\nbackward\n(.*)\nbeside the ops\n(.*)", text, re.DOTALL).groups()
        row = r"(?m)^ +[0-9.]+ .?s +[0-9.]+ % +8  {} +{} +[a-z]+"
        self.assertRegex(forward, row.format("conv2d", "conv1"))
        self.assertRegex(backward, row.format("conv2d_grad_weight", "grad/conv1/weight"))
        self.assertIn("(optimizer)", beside)
        shares = [float(share) for share in re.findall(r"([0-9.]+) %(?!  +all of it)", text)]
        self.assertAlmostEqual(sum(shares), 100, delta=0.05 * len(shares))
        events = json.loads((self.folder / "made/here/trace.json").read_text())
        names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
        calls = [(names[event["tid"]], event["name"]) for event in events if event["ph"] == "X"]
        for call, count in (("step", "commit"), 3), (("forward", "conv1"), 24), (("backward", "grad/conv1/weight"), 24):
            self.assertEqual(calls.count(call), count, call)

    def test_what_cannot_be_profiled_is_said(self):
        (self.folder / "file").write_text("")
        for arguments, code, words in (
                (["nowhere.yaml"], 66, "nowhere.yaml"),
                ([DIGITS, "--out", "file/below"], 65, "file/below"),
                ([DIGITS, "--set", "spec.trainer.batch.size=0"], 65, "spec.trainer.batch.size"),
                ([DIGITS, "--set", "spec.trainer.optimizer.sgd.learningRate=1e30"], 1, "nothing can be measured")):
            answer = self.explain(*arguments)
            self.assertEqual((answer.returncode, answer.stdout), (code, ""), answer.stderr)
            self.assertIn(words, answer.stderr)


if __name__ == "__main__":
    main()
