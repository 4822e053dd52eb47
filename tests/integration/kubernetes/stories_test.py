#!/usr/bin/env python3
"""What users of training operators rely on, on a real API server, each story as a user would live it with kubectl.

The operator is its own process with its own account; launchers and programs are real processes; the kubelet is played (kubelet.py).
"""
import json
import signal

from story_test_case import ENDLESS, FOREVER, LONG, StoryTest, digits, program
from testing import main


class Suspend(StoryTest):
    def test_job_created_suspended_has_no_pods_until_it_is_resumed(self):
        self.apply(program(FOREVER, suspend=True))
        self.wait_for_condition("Suspended")
        self.assertEqual((self.pods(with_deleted=True), self.services()), ({}, []))
        self.assertNotIn("startTime", self.status())
        self.kubectl("patch", "tj", "story", "--type=merge", "-p", '{"spec": {"suspend": false}}')
        self.wait_for_round(1, members=2)
        self.assertIn("startTime", self.status())

    def test_suspended_training_goes_on_from_its_checkpoint_when_resumed(self):
        self.apply(digits(epochs=ENDLESS))
        self.wait_for_step(20)
        first = self.status()["startTime"]
        self.kubectl("patch", "tj", "story", "--type=merge", "-p", '{"spec": {"suspend": true}}')
        self.wait_for_condition("Suspended")
        self.wait(lambda: not self.pods(with_deleted=True), "the end of the pods")
        saved = self.status()["progress"]["lastCheckpointStep"]
        self.assertGreaterEqual(saved, 20)
        self.kubectl("patch", "tj", "story", "--type=merge", "-p", '{"spec": {"suspend": false}}')
        self.wait_for_round(2)
        self.assertEqual(self.condition("Suspended")["status"], "False")
        self.assertGreater(self.status()["startTime"], first)
        self.assertIn(f"from the checkpoint of step {saved}", self.condition("Training")["message"])


class ManagedBy(StoryTest):
    def test_jobs_of_another_controller_are_left_alone(self):
        self.apply(program(FOREVER, name="theirs", managedBy="example.com/other"))
        self.apply(program(FOREVER))
        self.wait_for_round(1)
        self.assertNotIn("status", self.job("theirs"))
        self.assertEqual(self.pods("theirs", with_deleted=True), {})
        self.kubectl("delete", "tj", "theirs", "--timeout=60s")


class Failures(StoryTest):
    def test_interrupted_worker_is_replaced(self):
        self.apply(program(["sh", "-c", 'case $RINGMASTER_POD_NAME in story-1-0) exit 130;; esac; exec sleep 1000'], restart={"code": 0}))
        self.wait_for_round(1)
        self.wait(lambda: "story-1-1" in self.pods(), "the pod that replaces it")
        self.wait_for_round(2, members=2)
        self.assertEqual(self.status()["restarts"]["byCause"], {"Preemption": 1})

    def test_signals_that_end_a_program_are_named_and_cost_the_budget_of_code(self):
        for number, name in ((signal.SIGSEGV, "SIGSEGV"), (signal.SIGABRT, "SIGABRT")):
            with self.subTest(name):
                job = name.lower()
                self.apply(program(["sh", "-c", f"case $RINGMASTER_POD_NAME in {job}-1-0) kill -{number.value} $$;; esac; exec sleep 1000"],
                                   name=job, restart={"code": 1}))
                self.wait_for_round(2, members=2, name=job)
                self.assertEqual(self.status(job)["restarts"]["byCause"], {"Code": 1})
                self.assertIn(name, self.kubectl("get", "events", "--field-selector", f"involvedObject.name={job}"))

    def test_program_that_ignores_sigterm_is_killed_when_its_pod_is_deleted(self):
        self.apply(program(["sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 0.1; done"]))
        self.wait_for_round(1, members=2)
        self.wait(lambda: "deaf" in self.kubelet.log("story-1-0"), "the program to begin")
        self.kubectl("delete", "pod", "story-1-0", "--wait=false")
        self.wait(lambda: "story-1-0" not in self.pods(with_deleted=True), "the end of the pod")
        self.wait_for_round(2, members=2)
        self.assertIn("story-1-1", self.pods())

    def test_failure_past_the_budget_names_the_worker_and_its_last_words(self):
        self.apply(program(["sh", "-c", 'case $RINGMASTER_POD_NAME in story-1-*) echo "shapes differ in step 7"; exit 1;; esac; exec sleep 1000'],
                           restart={"code": 1}))
        self.wait_for_state("Failed")
        failed = self.wait_for_condition("Failed")
        self.assertEqual(failed["reason"], "RestartBudgetExhausted")
        for words in ("Worker 1", "exit code 1", "shapes differ in step 7"):
            self.assertIn(words, failed["message"])

    def test_evicted_pod_is_replaced_and_costs_no_budget(self):
        self.apply(program(FOREVER, restart={"code": 0, "unknown": 0}))
        self.wait_for_round(1, members=2)
        self.kubelet.evict("story-0-0")
        self.wait_for_round(2, members=2)
        self.assertIn("story-0-1", self.pods())
        self.assertEqual(self.status()["restarts"]["byCause"], {"Preemption": 1})

    def test_pod_that_runs_out_of_memory_is_replaced_within_its_own_budget(self):
        self.apply(program(FOREVER, restart={"code": 0}))
        self.wait_for_round(1, members=2)
        self.kubelet.run_out_of_memory("story-1-0")
        self.wait_for_round(2, members=2)
        self.assertEqual(self.status()["restarts"]["byCause"], {"OutOfMemory": 1})

    def test_malformed_command_fails_with_what_the_launcher_says(self):
        self.apply(program(["no-such-program"], restart={"code": 1, "unknown": 1}))
        self.wait_for_state("Failed")
        self.assertIn("no-such-program", self.condition("Failed")["message"])

    def test_missing_image_is_said_in_the_containers_own_words_until_it_is_there(self):
        words = 'Back-off pulling image "nowhere/none:1"'
        self.kubelet.withhold("nowhere/none:1", "ImagePullBackOff", words)
        self.apply(program(FOREVER, image="nowhere/none:1"))
        self.wait(lambda: words in self.condition("PodsReady").get("message", ""), lambda: f"the words; said: {self.condition('PodsReady')}")
        self.assertIn("ImagePullBackOff", json.dumps(self.condition("PodsReady")))
        self.kubelet.provide("nowhere/none:1")
        self.wait_for_round(1, members=2)


class Ends(StoryTest):
    # Worker 0 ends the job while worker 1 runs on.
    LEADER_ENDS = ["sh", "-c", 'case $RINGMASTER_POD_NAME in story-0-*) exit 0;; esac; exec sleep 1000']

    def ended(self, policy):
        self.apply(program(self.LEADER_ENDS, successPolicy="WorkerZero", cleanPodPolicy=policy))
        self.wait_for_state("Succeeded")

    def test_clean_pod_policy_all_removes_all_pods(self):
        self.ended("All")
        self.wait(lambda: not self.pods(with_deleted=True), "the end of all pods")

    def test_clean_pod_policy_running_keeps_those_that_have_ended(self):
        self.ended("Running")
        self.wait(lambda: list(self.pods(with_deleted=True)) == ["story-0-0"], "the end of the running pod")

    def test_clean_pod_policy_none_keeps_all_pods(self):
        self.ended("None")
        self.wait(lambda: self.kubelet.ended("story-1-0"), "the end of the other worker, which is told so")
        self.assertEqual(sorted(self.pods()), ["story-0-0", "story-1-0"])

    def test_active_deadline_fails_the_job_and_ends_its_pods(self):
        self.apply(program(FOREVER, activeDeadlineSeconds=3, cleanPodPolicy="All"))
        self.wait_for_state("Failed")
        self.assertEqual(self.condition("Failed")["reason"], "DeadlineExceeded")
        self.wait(lambda: not self.pods(with_deleted=True), "the end of the pods")

    def test_finished_jobs_are_deleted_after_their_time(self):
        self.apply(program(["true"], name="good", ttlSecondsAfterFinished=3600))
        self.apply(program(["false"], name="bad", ttlSecondsAfterFinished=3600, restart={"code": 0}))
        self.wait_for_state("Succeeded", "good")
        self.wait_for_state("Failed", "bad")
        for name in ("good", "bad"):
            self.kubectl("patch", "tj", name, "--type=merge", "-p", '{"spec": {"ttlSecondsAfterFinished": 1}}')
            self.wait(lambda name=name: self.job(name) is None, f"the end of {name}")
            self.wait(lambda name=name: not self.pods(name, with_deleted=True), f"the end of {name}'s pods")


class Size(StoryTest):
    def uids(self, *names):
        pods = self.pods()
        return [pods[name]["metadata"]["uid"] for name in names]

    def test_scaling_up_creates_only_what_is_missing(self):
        self.apply(program(FOREVER))
        self.wait_for_round(1, members=2)
        before = self.uids("story-0-0", "story-1-0")
        self.kubectl("scale", "tj/story", "--replicas=4")
        self.wait_for_round(2, members=4)
        self.assertEqual(sorted(self.pods()), ["story-0-0", "story-1-0", "story-2-0", "story-3-0"])
        self.assertEqual(self.uids("story-0-0", "story-1-0"), before)

    def test_scaling_down_removes_the_highest_and_restarts_no_one_else(self):
        self.apply(program(FOREVER, workers=3))
        self.wait_for_round(1, members=3)
        before = self.uids("story-0-0", "story-1-0")
        self.kubectl("scale", "tj/story", "--replicas=2")
        self.wait_for_round(2, members=2)
        self.wait(lambda: sorted(self.pods(with_deleted=True)) == ["story-0-0", "story-1-0"], "the end of the third pod")
        self.assertEqual(self.uids("story-0-0", "story-1-0"), before)
        self.assertEqual(self.restarts(), 0)

    def test_a_worker_too_many_of_the_trainer_leaves_after_a_checkpoint(self):
        self.apply(digits(epochs=ENDLESS, workers=3))
        self.wait_for_step(15)
        self.kubectl("scale", "tj/story", "--replicas=2")
        self.wait_for_round(2, members=2)
        self.wait(lambda: sorted(self.pods(with_deleted=True)) == ["story-0-0", "story-1-0"], "the end of the third pod")
        self.wait(lambda: "after a checkpoint these leave: story-2-0" in self.kubectl("get", "events"), "the event")
        self.wait(lambda: self.status()["progress"]["step"] > self.status()["checkpoints"][-1]["step"] > 0, "the others to go on")
        self.assertEqual(self.restarts(), 0)
        self.assertEqual(self.status().get("lostSeconds", {}).get("replay", 0), 0, "steps were done twice")

    def test_elastic_program_grows_loses_its_first_host_and_shrinks_while_the_others_go_on(self):
        # Each start of the program writes down its place.
        self.apply(program(["sh", "-c", 'echo "$RANK of $WORLD_SIZE" >> "starts-$RINGMASTER_POD_NAME"; ' + FOREVER[2]], launch={"mode": "Torch"}))
        self.wait_for_round(1, members=2)
        launcher = self.kubelet.pid("story-1-0")
        self.kubectl("scale", "tj/story", "--replicas=4")
        self.wait_for_round(2, members=4)
        self.kubectl("delete", "pod", "story-0-0", "--wait=false")
        self.wait_for_round(3, members=4)
        self.assertEqual(sorted(self.pods()), ["story-0-1", "story-1-0", "story-2-0", "story-3-0"])
        self.kubectl("scale", "tj/story", "--replicas=2")
        self.wait_for_round(4, members=2)
        starts = self.folder / "starts-story-1-0"
        wanted = ["1 of 2", "1 of 4", "1 of 4", "1 of 2"]
        self.wait(lambda: starts.exists() and starts.read_text().splitlines() == wanted, lambda: f"its starts; they are {starts.read_text()}")
        self.assertEqual(self.kubelet.pid("story-1-0"), launcher)
        self.wait(lambda: sorted(self.pods(with_deleted=True)) == ["story-0-1", "story-1-0"], "the end of the others")

    def test_pod_and_service_deleted_by_hand_come_back(self):
        self.apply(program(FOREVER))
        self.wait_for_round(1, members=2)
        self.assertEqual(self.services(), ["story"])
        self.kubectl("delete", "service", "story")
        self.wait(lambda: self.services() == ["story"], "the service to come back")
        self.kubectl("delete", "pod", "story-1-0", "--wait=false")
        self.wait_for_round(2, members=2)
        self.assertEqual(sorted(self.pods()), ["story-0-0", "story-1-1"])


class Security(StoryTest):
    def test_job_without_a_pod_template_runs_where_only_restricted_pods_may(self):
        enforced = self.get("namespace", self.namespace)["metadata"]["labels"]["pod-security.kubernetes.io/enforce"]
        self.assertEqual(enforced, "restricted")
        job = digits(epochs=1)
        job["spec"]["workers"].pop("template")
        self.apply(job)
        self.wait(lambda: len(self.pods()) == 2, lambda: f"two pods; {self.condition('PodsReady')}")
        self.wait(lambda: all(pod["status"].get("phase") == "Running" for pod in self.pods().values()), "them to run")

    def test_worker_may_read_and_write_nothing(self):
        self.apply(digits(epochs=ENDLESS))
        self.wait_for_round(1)
        pod = self.pods()["story-0-0"]
        self.assertFalse(pod["spec"]["automountServiceAccountToken"])
        user = f"system:serviceaccount:{self.namespace}:{pod['spec']['serviceAccountName']}"
        for what in (("get", "pods"), ("list", "secrets"), ("create", "pods"), ("patch", "trainingjobs/status"), ("get", "trainingjobs")):
            code, text = self.kubectl("auth", "can-i", *what, f"--as={user}", check=False)
            self.assertEqual((code, text.strip().splitlines()[-1]), (1, "no"), what)


class Training(StoryTest):
    def test_digits_train_to_the_end_and_survive_a_killed_worker(self):
        self.apply(digits(epochs=LONG))
        self.wait_for_step(30)
        self.kubelet.kill("story-1-0", signal.SIGKILL)
        self.wait_for_round(2)
        self.wait_for_state("Succeeded")
        status = self.status()
        self.assertEqual(self.restarts(), 1)
        self.assertEqual(status["progress"]["step"], status["progress"]["totalSteps"])

    def test_worker_that_stands_still_is_found_named_and_replaced(self):
        self.apply(digits(epochs=ENDLESS))
        self.wait_for_step(20)
        self.kubelet.kill("story-1-0", signal.SIGSTOP)
        self.wait_for_round(2, members=2)
        incident = self.status()["restarts"]["recent"][0]
        self.assertEqual((incident["cause"], incident["pod"]), ("Hang", "story-1-0"))
        self.assertEqual(sorted(self.pods()), ["story-0-0", "story-1-1"])

    def test_deleted_job_takes_its_pods_with_it(self):
        self.apply(program(FOREVER))
        self.wait_for_round(1)
        self.kubectl("delete", "tj", "story", "--timeout=60s")
        self.wait(lambda: not self.pods(with_deleted=True) and not self.services(), "the end of what it owned")


if __name__ == "__main__":
    main()
