#!/usr/bin/env python3
"""What `ringmaster run` promises when nothing goes wrong."""
import json
import socket
import urllib.request

from ringmaster_run import LONG, ROOT, SHORT, RunTest, main, ringmaster, wait_until


class RunCommand(RunTest):
    def test_digits_reach_97_percent_on_the_held_out_fifth(self):
        _, steps, accuracy = self.digits().result()
        self.assertGreaterEqual(accuracy, 0.97)
        self.assertEqual(steps, 450)  # 20 passes over 1,438 samples in batches of 64, the last one completed

    def test_one_to_four_workers_end_with_the_same_bits(self):
        results = {workers: self.undisturbed(*SHORT, "--workers", str(workers), "--set", "spec.workers.maxReplicas=4")
                   for workers in (1, 2, 3, 4)}
        self.assertEqual(len(set(results.values())), 1, results)

    def test_ring_example_trains_without_shards(self):
        _, _, accuracy = self.run_job(ROOT / "examples/digits/job-ring.yaml", *SHORT).result()
        self.assertGreater(accuracy, 0.8)

    def test_char_lm_learns(self):
        run = self.run_job(ROOT / "examples/char-lm/job.yaml", "--set", "spec.trainer.steps=40")
        _, steps, accuracy = run.result()
        self.assertEqual(steps, 40)
        self.assertGreater(accuracy, 0.15)  # a blank alone is 15 % of the text

    def test_foreign_program_gets_what_torchrun_gives(self):
        manifest = self.folder / "foreign.yaml"
        manifest.write_text(json.dumps({
            "apiVersion": "training.ringmaster.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "foreign"},
            "spec": {"launch": {"mode": "Torch"}, "workers": {"replicas": 2, "template": {"spec": {"containers": [
                {"name": "worker", "command": ["sh", "-c", "echo rank $RANK of $WORLD_SIZE"]}]}}}}}))
        self.assertEqual(self.run_job(manifest).wait(), 0)
        logs = ringmaster(self.folder, "logs", "foreign").stdout
        self.assertIn("rank 0 of 2", logs)
        self.assertIn("rank 1 of 2", logs)

    def test_get_shows_the_finished_job_and_what_happened(self):
        self.digits(*SHORT).result()
        table = ringmaster(self.folder, "get").stdout
        self.assertRegex(table, r"digits +Succeeded +\S+ +113/113")
        self.assertIn("RoundStarted", ringmaster(self.folder, "get", "digits", "--events").stdout)

    def test_metrics_are_served_by_operator_and_workers(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            address = "127.0.0.1:%d" % free.getsockname()[1]
        run = self.digits(*LONG, "--metrics-address", address)
        run.wait_for_step(5)
        operator = urllib.request.urlopen(f"http://{address}/metrics", timeout=30).read().decode()
        self.assertIn('ringmaster_operator_jobs{state="Running"} 1', operator)
        self.assertRegex(operator, r'ringmaster_operator_reconcile_total{result="[a-z_]+"} [1-9]')
        text = wait_until(lambda: metrics_of_a_worker(run), "a worker's metrics")
        self.assertRegex(text, r"ringmaster_trainer_step_seconds_count [1-9]")
        for name in ("samples_per_second", "loss", "allreduce_seconds", "allreduce_bytes"):
            self.assertIn(f"ringmaster_trainer_{name}", text)


def metrics_of_a_worker(run):
    for member in run.job().get("status", {}).get("members", []):
        host = member["address"].rsplit(":", 1)[0]
        try:
            return urllib.request.urlopen(f"http://{host}:7472/metrics", timeout=10).read().decode()
        except OSError:
            continue
    return None


class ValidateCommand(RunTest):
    def test_every_mistake_is_said_at_once_with_its_line(self):
        manifest = self.folder / "broken.yaml"
        text = (ROOT / "examples/digits/job.yaml").read_text()
        manifest.write_text(text.replace("momentum:", "momentun:").replace("replicas: 4", "replicas: 4\n    minReplicas: 9"))
        answer = ringmaster(self.folder, "validate", "broken.yaml")
        self.assertEqual(answer.returncode, 65)
        self.assertRegex(answer.stderr, r"broken.yaml:\d+: spec.workers.minReplicas: .*9.*")
        self.assertRegex(answer.stderr, r"broken.yaml:\d+: spec.trainer.optimizer.sgd.momentun: unknown field; did you mean momentum\?")

    def test_bad_manifest_starts_nothing(self):
        manifest = self.folder / "bad.yaml"
        manifest.write_text("kind: TrainingJob\n")
        run = self.run_job(manifest)
        self.assertEqual(run.wait(), 65)
        self.assertFalse((self.folder / ".ringmaster").exists())

    def test_valid_manifest_is_explained(self):
        answer = ringmaster(ROOT, "validate", "examples/digits/job.yaml")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertIn("virtual shards", answer.stdout)


if __name__ == "__main__":
    main()
