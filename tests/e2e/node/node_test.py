#!/usr/bin/env python3
"""The project on two real nodes: its images, its chart, the example; then bad days. The bits are always a laptop's."""
import json
import tarfile

import yaml

from node_test_case import CHARTS, DIGITS, IMAGES, SANDBOX_IMAGE, SYSTEM, NodeTest, main, spread_over_nodes
import tools
from testing import BIN

OPERATORS = "--selector=app.kubernetes.io/component=operator"


class OnRealNodes(NodeTest):
    def operators(self):
        items = self.get("pods", OPERATORS, namespace=SYSTEM)["items"]
        return {item["metadata"]["name"]: item for item in items if not item["metadata"].get("deletionTimestamp")}

    def leader(self):
        return self.get("lease", "ringmaster", namespace=SYSTEM)["spec"]["holderIdentity"]

    def test_the_example_on_both_nodes_ends_as_on_a_laptop(self):
        expected = self.on_laptop(DIGITS.read_text())
        job = yaml.safe_load(DIGITS.read_text())
        spread_over_nodes(job)
        self.apply(job)
        self.assertEqual(self.result(), expected)
        nodes = {item["spec"]["nodeName"] for item in self.get("pods")["items"]}
        self.assertEqual(nodes, {"node-0", "node-1"})
        self.assertEqual(self.causes(), {})

    def test_what_is_installed_came_from_a_registry_as_it_was_built(self):
        self.kubectl("apply", "-f", str(DIGITS))
        self.wait_for_end()
        for image, pods in (("operator", self.operators()), ("worker", {item["metadata"]["name"]: item for item in self.get("pods")["items"]})):
            archive, = (BIN.parent / "test-images").glob(f"ringmaster-{image}-*.tar")
            with tarfile.open(archive) as tar:
                built, = json.load(tar.extractfile("index.json"))["manifests"]
            ran = {status["imageID"] for pod in pods.values() for status in pod["status"]["containerStatuses"]}
            self.assertEqual(ran, {f"{IMAGES}/ringmaster-{image}@{built['digest']}"})
        pushed, = CHARTS.glob("*.tgz")
        tools.run(tools.helm(), "pull", "--plain-http", f"oci://{IMAGES}/ringmaster", "--destination", self.folder)
        self.assertEqual((self.folder / pushed.name).read_bytes(), pushed.read_bytes())

    def test_the_launcher_is_process_1_of_a_container_that_can_do_nothing_else(self):
        expected = self.long_job()
        self.wait_for_checkpoint()
        said = self.kubectl("exec", next(iter(self.pods())), "--", "sh", "-c", """
            head -z -n 1 /proc/1/cmdline | tr '\\0' '\\n'; readlink /proc/1/exe; id -u
            grep -E '^(CapEff|NoNewPrivs|Seccomp):' /proc/1/status
            touch /workspace/here 2>&1; ls /var/run/secrets""").splitlines()
        self.assertEqual(said, [
            "ringmaster-launcher", "/usr/local/bin/ringmaster-launcher", "65532", "CapEff:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2",
            "touch: cannot touch '/workspace/here': Read-only file system", "ringmaster.dev"])  # no token for the API server
        self.assertEqual(self.result(), expected)

    def run_with(self, container, **spec):
        """Starts a job of two workers with this container in their template."""
        container = {"name": "worker", "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}, **container}
        security = {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}}
        self.kubectl("apply", "-f", "-", stdin=json.dumps({
            "apiVersion": "training.ringmaster.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "digits"},
            "spec": {"cleanPodPolicy": "None", **spec,
                     "workers": {"replicas": 2, "template": {"spec": {"containers": [container], "securityContext": security}}}}}))

    def test_a_program_of_ones_own_runs_in_an_image_that_lacks_the_launcher(self):
        script = 'echo "rank $RANK of $WORLD_SIZE at $MASTER_ADDR"'
        self.run_with({"image": SANDBOX_IMAGE, "command": ["sh", "-c", script]}, launch={"mode": "Torch"})
        self.wait_for_end()
        pods = self.get("pods")["items"]
        master = next(pod["status"]["podIP"] for pod in pods if pod["metadata"]["name"].startswith("digits-0-"))
        said = "".join(self.kubectl("logs", pod["metadata"]["name"]) for pod in pods)
        for rank in range(2):
            self.assertIn(f"rank {rank} of 2 at {master}\n", said)

    def test_a_trainer_that_needs_more_memory_than_it_may_ever_have_fails_its_job_before_the_first_step(self):
        trainer = yaml.safe_load(DIGITS.read_text())["spec"]["trainer"]
        trainer["batch"] = {"size": 32768, "shards": 2}
        self.run_with({"resources": {"limits": {"memory": "64Mi"}}}, trainer=trainer)
        status = self.wait_for_end("Failed")
        failed = next(item for item in status["conditions"] if item["type"] == "Failed")
        self.assertRegex(failed["message"], r"the model needs at least [0-9.]+ MB of memory, its container has a limit of 67.11 MB: ")
        self.assertEqual((failed["reason"], self.causes()), ("PermanentError", {"Code": 1}))

    def test_a_program_that_reaches_its_memory_limit_is_named(self):
        self.run_with({"image": SANDBOX_IMAGE, "command": ["tail", "/dev/zero"], "resources": {"limits": {"memory": "64Mi"}}})  # keeps a line without end
        self.wait(self.causes, lambda: f"an incident; the status is {json.dumps(self.status())}")
        self.assertEqual(set(self.causes()), {"OutOfMemory"})
        self.assertIn("the container has reached its memory limit", self.status()["restarts"]["recent"][0]["message"])

    def test_a_deleted_worker_is_replaced(self):
        expected = self.long_job()
        self.wait_for_checkpoint()
        victim = sorted(self.pods())[1]
        self.kubectl("delete", "pod", victim, "--wait=false")
        self.assertEqual(self.result(), expected)
        self.assertEqual(self.causes(), {"Preemption": 1})

    def test_a_worker_whose_container_is_killed_is_replaced(self):
        expected = self.long_job()
        self.wait_for_checkpoint()
        name, pod = sorted(self.pods().items())[2]
        self.kill(pod, "ringmaster-launcher")
        self.assertEqual(self.result(), expected)
        self.assertEqual(self.causes(), {"Unknown": 1})
        self.assertRegex(self.status()["restarts"]["recent"][0]["message"], r"^Worker 2 \(digits-2-0, round 1\) was ended by signal 9")
        self.assertGreaterEqual(self.status()["round"], 2)

    def test_a_drained_nodes_workers_and_operators_go_on_at_the_other(self):
        # First, as it may take longer than the job does.
        self.wait(lambda: self.get("pdb", "ringmaster", namespace=SYSTEM)["status"].get("disruptionsAllowed") == 1, "both operators to be ready")
        leader = self.leader().split("_")[0]
        node = self.operators()[leader]["spec"]["nodeName"]
        self.addCleanup(self.kubectl, "uncordon", node)
        expected = self.long_job(spread_over_nodes)
        self.wait_for_checkpoint()
        # Where both operators are on it, the second stays until another is ready: the budget says so, and kubectl tries again.
        self.kubectl("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=240s")
        left = {**self.operators(), **self.pods()}
        self.assertNotIn(leader, left)
        self.assertNotIn(node, {pod["spec"].get("nodeName") for pod in left.values()})
        self.assertEqual(self.result(), expected)
        self.assertEqual(set(self.causes()), {"Preemption"})
        self.assertNotEqual(self.leader().split("_")[0], leader)

    def test_training_goes_on_without_the_operators(self):
        expected = self.long_job()
        self.wait_for_checkpoint()
        round_before, before = self.status()["round"], set(self.operators())
        self.kubectl("delete", "pods", f"--namespace={SYSTEM}", OPERATORS, "--grace-period=0", "--force")
        self.wait(lambda: self.leader().split("_")[0] not in before, lambda: f"another leader than {self.leader()}")
        self.assertEqual(self.result(), expected)
        self.assertEqual((self.status()["round"], self.causes()), (round_before, {}))


if __name__ == "__main__":
    main()
