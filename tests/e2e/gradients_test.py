#!/usr/bin/env python3
"""What spec.trainer.gradients promises, as a user sets it."""
import json

from ringmaster_run import ROOT, SHORT, RunTest, main, ringmaster

DIGITS = str(ROOT / "examples/digits/job.yaml")


class Gradients(RunTest):
    def trained(self, *settings, workers=2, more=()):
        sets = [argument for setting in settings for argument in ("--set", f"spec.trainer.gradients.{setting}")]
        return self.digits(*SHORT, "--workers", str(workers), "--set", "spec.workers.maxReplicas=4", *sets, *more, folder=self.fresh_folder())

    def test_compressed_gradients_keep_the_bits_at_every_number_of_workers(self):
        plain = self.trained().result()
        for method in ("bf16", "f16"):
            results = {workers: self.trained(method + "={}", "bucketBytes=16384", workers=workers).result() for workers in (1, 3)}
            self.assertEqual(len(set(results.values())), 1, results)
            weights, _, accuracy = results[1]
            self.assertGreater(accuracy, 0.8)
            self.assertNotEqual(weights, plain[0])

    def test_error_feedback_learns_and_is_no_promise_of_bits(self):
        for method in ("topK={share: 0.05}", "oneBit={}"):
            run = self.trained(method)
            _, _, accuracy = run.result()
            self.assertGreater(accuracy, 0.7)
            conditions = {c["type"]: (c["status"], c["reason"]) for c in run.job()["status"]["conditions"]}
            self.assertEqual(conditions["SameBits"], ("False", "ErrorFeedback"))
            said = ringmaster(self.folder, "validate", DIGITS, "--set", "spec.trainer.gradients." + method).stdout
            self.assertIn("with error feedback the weights depend on the workers", said)

    def test_encrypted_connections_change_no_bit(self):
        said = "connections between workers are encrypted"
        plain, encrypted = (self.trained(*settings) for settings in ((), ("encryption=TLS",)))
        self.assertEqual(encrypted.result(), plain.result())
        self.assertEqual(ringmaster(encrypted.folder, "logs", "digits").stdout.count(said), 2)
        self.assertNotIn(said, ringmaster(plain.folder, "logs", "digits").stdout)

    def test_adasum_learns(self):
        _, _, accuracy = self.trained("adasum={}").result()
        self.assertGreater(accuracy, 0.7)

    def test_a_timeline_shows_each_buckets_phases(self):
        run = self.trained("timeline=true", "bucketBytes=16384")
        run.result()
        files = sorted(run.folder.glob(".ringmaster/digits/checkpoints/timeline/*.json"))
        self.assertEqual([file.name for file in files], ["digits-0-0.json", "digits-1-0.json"])
        for rank, file in enumerate(files):
            events = json.loads(file.read_text())
            self.assertEqual({event["pid"] for event in events}, {rank})
            tracks = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
            buckets = {name for name in tracks.values() if name.startswith("gradients of ")}
            self.assertGreater(len(buckets), 2, tracks)
            for bucket in buckets:
                phases = {event["name"] for event in events if event["ph"] == "X" and tracks[event["tid"]] == bucket}
                self.assertLessEqual({"fuse", "wait", "reduce", "ordered_sum"}, phases, bucket)

    def test_the_algorithm_that_the_pod_template_names_sums_the_gradients(self):
        digests = set()
        for algorithm, wanted in (("direct", {"add slice"}), ("halving-doubling", {"add halves"}), ("one-shot", {"add slice", "swap"})):
            container = {"name": "worker", "env": [{"name": "RINGMASTER_COLLECTIVE_ALGORITHM", "value": algorithm}]}
            template = f"spec.workers.template={json.dumps({'spec': {'containers': [container]}})}"
            run = self.trained("timeline=true", more=("--set", template))
            digests.add(run.result())
            files = list(run.folder.glob(".ringmaster/digits/checkpoints/timeline/*.json"))
            self.assertEqual(len(files), 2)
            for file in files:
                phases = {event["name"] for event in json.loads(file.read_text()) if event["ph"] == "X"}
                self.assertEqual(phases & {"add slice", "add halves", "swap"}, wanted, (algorithm, file.name))
        self.assertEqual(len(digests), 1, digests)

    def test_wrong_settings_are_named(self):
        for settings, message in ((("bf16={}", "f16={}"), "spec.trainer.gradients"), (("topK={share: 0}",), "spec.trainer.gradients.topK.share"),
                                  (("encryption=SSL",), "spec.trainer.gradients.encryption")):
            sets = [argument for setting in settings for argument in ("--set", f"spec.trainer.gradients.{setting}")]
            refused = ringmaster(self.folder, "validate", DIGITS, *sets)
            self.assertEqual(refused.returncode, 65)
            self.assertIn(message, refused.stderr)


if __name__ == "__main__":
    main()
