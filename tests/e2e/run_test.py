#!/usr/bin/env python3
"""What `ringmaster run` promises when nothing goes wrong."""
import json
import os
import signal
import socket
import urllib.request

from ringmaster_run import LONG, ROOT, SHORT, RunTest, main, ringmaster, wait_until


class RunCommand(RunTest):
    def test_digits_reach_97_percent_on_the_held_out_fifth(self):
        _, steps, accuracy = self.digits().result()
        self.assertGreaterEqual(accuracy, 0.97)
        self.assertEqual(steps, 450)  # 20 passes over 1,438 samples in batches of 64, the last one completed

    def test_one_to_four_workers_end_with_the_same_bits(self):
        results = {workers: self.digits(*SHORT, "--workers", str(workers), "--set", "spec.workers.maxReplicas=4",
                                        folder=self.fresh_folder()).result() for workers in (1, 2, 3, 4)}
        self.assertEqual(len(set(results.values())), 1, results)

    def test_each_rule_that_keeps_the_bits_is_needed(self):
        def digests(**env):
            """Of one and of three workers. Two of four shards each would add in the tree's order whatever the rule."""
            return {self.digits("--workers", str(workers), "--set", "spec.trainer.epochs=1", folder=self.fresh_folder(), env=env).result()[0]
                    for workers in (1, 3)}
        self.assertEqual(len(digests()), 1)
        for rule in ("ARRIVAL_ORDER", "LOCAL_STREAMS", "LOCAL_STATISTICS"):
            self.assertEqual(len(digests(**{f"RINGMASTER_DEBUG_{rule}": "true"})), 2, rule)

    def test_workers_choose_by_links_that_they_have_measured(self):
        self.digits(*SHORT, "--workers", "2", env={"RINGMASTER_LOG": "debug"}).result()
        logs = ringmaster(self.folder, "logs", "digits").stdout
        self.assertRegex(logs, r"links measured.*within_a_node=.*us, .*GB/s")

    def over_network(self, network):
        """A run whose manifest names this network for the workers' data."""
        container = {"name": "worker", "env": [{"name": "RINGMASTER_PEER_INTERFACE", "value": network}]}
        return self.digits(*SHORT, "--workers", "2", "--set", f"spec.workers.template={json.dumps({'spec': {'containers': [container]}})}")

    def test_workers_find_each_other_on_the_network_that_the_manifest_names(self):
        run = self.over_network("no-such-net,127.0.0.0/8")
        self.assertEqual(run.result(), self.undisturbed(*SHORT))
        addresses = {member["address"] for member in run.job()["status"]["members"]}
        self.assertEqual([len(addresses), {address.split(":")[0] for address in addresses}], [2, {"127.0.0.1"}])

    def test_a_network_that_is_not_there_fails_the_job_at_once_and_those_that_are_there_are_listed(self):
        run = self.over_network("no-such-net")
        self.assertEqual(run.wait(), 2, run.text())
        self.assertRegex(run.text(), "RINGMASTER_PEER_INTERFACE: there is no interface no-such-net; this worker has .*lo 127.0.0.1")
        self.assertIn("PermanentError", run.text())

    def test_ring_example_trains_without_shards(self):
        _, _, accuracy = self.run_job(ROOT / "examples/digits/job-ring.yaml", *SHORT).result()
        self.assertGreater(accuracy, 0.8)

    def test_char_lm_learns(self):
        run = self.run_job(ROOT / "examples/char-lm/job.yaml", "--set", "spec.trainer.steps=40")
        _, steps, accuracy = run.result()
        self.assertEqual(steps, 40)
        self.assertGreater(accuracy, 0.15)  # a blank alone is 15 % of the text

    def test_a_job_that_diverges_says_which_op_made_the_first_number_that_is_none(self):
        run = self.digits("--workers", "2", "--set", "spec.trainer.optimizer.sgd.learningRate=1e30")
        self.assertNotEqual(run.wait(), 0)
        self.assertRegex(run.text(), r"in step \d+ \(loss [^)]+\); on worker \d the first came out of \S+ \(\w+, \w+\[[^)]*\) with samples \d+, ")
        self.assertIn("lower the learning rate or mend the data, or set nonFiniteLoss: Skip", run.text())

    def test_steps_that_diverge_are_left_out_where_the_manifest_says_so_and_the_first_is_explained(self):
        run = self.digits("--workers", "1", "--set", "spec.trainer.optimizer.sgd.learningRate=1e30", "--set", "spec.trainer.nonFiniteLoss=Skip",
                          "--set", "spec.trainer.epochs=1")
        self.assertEqual(run.wait(), 0, run.text())
        log = ringmaster(self.folder, "logs", "digits").stdout
        left_out = [line for line in log.splitlines() if "step left out" in line]
        self.assertIn("the first came out of ", left_out[0])
        self.assertGreater(len(left_out), 1)
        self.assertTrue(all("not looked for again" in line for line in left_out[1:]), left_out)
        self.assertEqual(run.text().count(f"of which {len(left_out)} were left out for a loss that is not finite"), 1, run.text())
        job = json.loads(ringmaster(self.folder, "get", "digits", "-o", "json").stdout)
        self.assertEqual(job["status"]["result"]["skippedSteps"], len(left_out))
        self.assertEqual(job["status"]["progress"]["skippedSteps"], len(left_out))

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

    def test_metrics_of_operator_and_workers_say_what_happened(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            address = "127.0.0.1:%d" % free.getsockname()[1]
        # Far longer than the test looks at it, however fast the machine is.
        run = self.digits(*LONG, "--set", "spec.trainer.epochs=2000", "--metrics-address", address)
        run.wait_for_step(25)
        os.kill(run.workers()[2], signal.SIGKILL)
        before = run.step()
        wait_until(lambda: run.job()["status"].get("restarts", {}).get("total"), "the incident")
        run.wait_for_step(before + 30)
        wait_until(lambda: len(run.job()["status"].get("checkpoints", [])) > 1, "two checkpoints")
        operator = scrape(address)
        self.assertTrue(run.running(), "the metrics are of a job that trains")
        worker = scrape(wait_until(lambda: metrics_address(run, rank=0), "a worker's address"))
        self.check_operator(operator, run.job()["status"])
        self.check_worker(worker)

    def check_operator(self, metrics, status):
        def total(name):
            return sum(value for series, value in metrics.items() if series.startswith(f"ringmaster_operator_{name}{{"))
        for result in ("done", "requeue_after", "retry", "terminal"):
            passes = metrics[f'ringmaster_operator_reconcile_total{{result="{result}"}}']
            self.assertLessEqual(abs(metrics[f'ringmaster_operator_reconcile_seconds_count{{result="{result}"}}'] - passes), 1)
            self.assertEqual(metrics[f'ringmaster_operator_reconcile_seconds_sum{{result="{result}"}}'] > 0, passes > 0)
        self.assertGreater(total("reconcile_total"), 10)
        self.assertLess(total("reconcile_seconds_sum") / total("reconcile_total"), 5)
        self.assertLessEqual(metrics["ringmaster_operator_queue_depth"], 1, "there is one job")
        self.assertEqual(total("jobs"), 1)
        self.assertEqual(metrics['ringmaster_operator_jobs{state="Running"}'], 1)
        self.assertEqual(metrics["ringmaster_operator_rounds_total"], status["round"])
        for cause, count in status["restarts"]["byCause"].items():
            self.assertEqual(metrics[f'ringmaster_operator_restarts_total{{cause="{cause}"}}'], count)
        self.assertEqual(total("restarts_total"), status["restarts"]["total"])
        self.assertGreaterEqual(metrics["ringmaster_operator_checkpoints_total"], 2)

    def check_worker(self, metrics):
        def of(name):
            return metrics[f"ringmaster_trainer_{name}"]

        def mean(name):
            return of(f"{name}_seconds_sum") / of(f"{name}_seconds_count")
        steps = of("steps_total")
        self.assertGreaterEqual(steps, 40)
        self.assertGreaterEqual(of("step"), 40)
        for name in ("step", "compute", "allreduce"):
            self.assertLessEqual(abs(of(f"{name}_seconds_count") - steps), 2, name)
            self.assertTrue(0 < mean(name) < 30, name)
        self.assertLess(mean("compute"), mean("step"))
        self.assertLess(mean("allreduce"), mean("step"))
        self.assertLessEqual(abs(of("samples_total") - 16 * steps), 32, "one shard of 16 samples a step")
        self.assertGreater(of("samples_per_second"), 1)
        self.assertTrue(0 < of("loss") < 3)
        self.assertTrue(0.5 < of("accuracy") <= of("top5_accuracy") <= 1)
        self.assertTrue(0 < of("evaluation_loss") < 3)
        gradients = 59970 * 4  # bytes; each rank sends and gets at least its share of the sum and of the result
        for direction in ("sent", "received"):
            self.assertGreater(of(f'allreduce_bytes_total{{direction="{direction}"}}'), (steps - 2) * gradients)
            sums = of(f'collective_bytes_total{{direction="{direction}",operation="ordered_sum"}}')
            self.assertGreater(sums, (steps - 2) * gradients)
        # One a step, and those of evaluations, and of a step that was broken off.
        self.assertTrue(steps <= of('collective_calls_total{operation="ordered_sum"}') < 1.5 * steps)
        self.assertGreaterEqual(of("sharing_peers"), 1, "workers of one machine share memory")
        self.assertGreaterEqual(of('checkpoints_total{result="written"}'), 1)  # a busy disk skips some
        self.assertEqual(of('checkpoints_total{result="failed"}'), 0)
        self.assertTrue(0 < mean("checkpoint") < 30)
        self.assertEqual((of("rounds_total"), of("rounds_lost_total"), of("skipped_steps_total")), (2, 1, 0))


def metrics_address(run, rank):
    for member in run.job().get("status", {}).get("members", []):
        if member.get("rank", 0) == rank:
            return member["address"].rsplit(":", 1)[0] + ":7472"
    return None


def scrape(address):
    """{series with its labels: value} of a metrics endpoint."""
    text = urllib.request.urlopen(f"http://{address}/metrics", timeout=30).read().decode()
    lines = (line.rsplit(" ", 1) for line in text.splitlines() if line and not line.startswith("#"))
    return {series: float(value) for series, value in lines}


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
