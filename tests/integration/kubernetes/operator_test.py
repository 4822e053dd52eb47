#!/usr/bin/env python3
"""The operator on a real API server: the pods that a manifest gives, workers that prove who they are, leaders that come and go."""
import base64
import json
import os
import signal
import subprocess
import time

from cluster_test_case import CRD, LOOK, ROOT, job, kubectl, main, wait_until
from operator_process import LEASE, LEASE_SECONDS, NAME, OperatorTest
from testing import BIN

BY_HAND = {"metadata": {"annotations": {"test.ringmaster.dev/kubelet": "by-hand"}}}
AUDIENCE = "rendezvous.ringmaster.dev"


class OperatorPods(OperatorTest):
    def test_a_job_gives_pods_and_a_status(self):
        operator = self.start_operator()
        self.apply(job())
        pods = self.wait_for_pods("digits-0-0", "digits-1-0")
        spec = pods["digits-0-0"]["spec"]
        worker = spec["containers"][0]
        environment = {entry["name"]: entry.get("value") for entry in worker["env"]}
        self.assertEqual((worker["image"], worker["command"]), ("worker:1", ["ringmaster-launcher"]))
        self.assertTrue(environment["RINGMASTER_RENDEZVOUS"].startswith("127.0.0.1:"))
        self.assertEqual(environment["RINGMASTER_RENDEZVOUS_CA"].encode(), self.rendezvous_secret()["tls.crt"])
        self.assertEqual(environment["RINGMASTER_TOKEN_FILE"], "/var/run/secrets/ringmaster.dev/token")
        self.assertFalse(spec["automountServiceAccountToken"])
        self.assertEqual({(each["key"], each["effect"], each["tolerationSeconds"]) for each in spec["tolerations"]},
                         {(f"node.kubernetes.io/{taint}", "NoExecute", 30) for taint in ("not-ready", "unreachable")})
        token = next(volume for volume in spec["volumes"] if volume["name"] == "ringmaster-token")
        self.assertEqual(token["projected"]["sources"][0]["serviceAccountToken"]["audience"], AUDIENCE)
        self.assertEqual(pods["digits-0-0"]["metadata"]["ownerReferences"][0]["uid"], self.get("tj", "digits")["metadata"]["uid"])
        status = wait_until(lambda: self.get("tj", "digits").get("status"), "a status", between=LOOK)
        self.assertEqual(status["workers"]["desired"], 2)
        events = wait_until(lambda: self.kubectl("get", "events", "-o", "name"), "events", between=LOOK)
        self.assertTrue(events)
        self.assertEqual(operator.end(), 0)

    def test_deleting_the_job_deletes_the_pods(self):
        self.start_operator()
        self.apply(job())
        self.wait_for_pods("digits-0-0", "digits-1-0")
        self.kubectl("delete", "tj", "digits")
        self.wait_for_pods()

    def test_system_authorities_are_trusted_where_the_kubeconfig_names_none(self):
        """By calls, and by watches: without them nobody learns that a pod has gone."""
        config = json.loads(self.kubeconfig.read_text(encoding="utf-8"))
        authority = self.folder / "system.pem"
        authority.write_bytes(base64.b64decode(config["clusters"][0]["cluster"].pop("certificate-authority-data")))
        self.kubeconfig.write_text(json.dumps(config), encoding="utf-8")
        self.start_operator(environment={"SSL_CERT_FILE": str(authority)})
        self.apply(job())
        made = self.wait_for_pods("digits-0-0", "digits-1-0")["digits-1-0"]["metadata"]["uid"]
        self.kubectl("delete", "pod", "digits-1-0", "--wait=false")

        def replaced():
            pods = self.pods().values()
            return len(pods) == 2 and made not in {pod["metadata"]["uid"] for pod in pods}
        wait_until(replaced, lambda: f"another pod instead of {made}; there are {list(self.pods())}", between=LOOK)

    def test_an_account_without_rights_is_told_what_it_lacks(self):
        self.kubectl("delete", "rolebinding", "watched")
        operator = self.start_operator()
        self.assertNotEqual(operator.process.wait(timeout=120), 0)
        log = operator.log.read_text(encoding="utf-8")
        self.assertIn(f"create pods in namespace {self.namespace}", log)
        self.assertIn("rbac.json", log)


class OperatorOfAnotherVersion(OperatorTest):
    """CTest runs these alone: the definition is the whole cluster's."""

    def setUp(self):
        super().setUp()
        self.addCleanup(self.apply_definition, CRD.read_text(encoding="utf-8"))

    def change_definition(self, change):
        """Puts the definition in place with `change(the properties of spec)` made to it."""
        definition = json.loads(kubectl("create", "--dry-run=client", "-o", "json", "-f", str(CRD)))
        change(definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"])
        self.apply_definition(json.dumps(definition))

    @staticmethod
    def apply_definition(text):
        kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text)

    @staticmethod
    def make_newer(fields):
        fields["tomorrow"] = {"type": "string", "default": "yes"}

    def end_of(self, operator):
        """What it says at its end, which must come by itself."""
        self.assertEqual(operator.process.wait(timeout=120), 1)
        return operator.log.read_text(encoding="utf-8")

    def test_one_that_is_older_than_the_definition_says_so_and_ends(self):
        self.change_definition(self.make_newer)
        self.assertIn("is newer than this operator, which does not know spec.tomorrow", self.end_of(self.start_operator()))

    def test_one_that_is_newer_than_the_definition_says_so_and_ends(self):
        self.change_definition(lambda fields: fields.pop("startDeadlineSeconds"))
        said = self.end_of(self.start_operator())
        self.assertIn("is older than this operator, it lacks spec.startDeadlineSeconds", said)
        self.assertIn("kubectl apply --server-side -f crds/", said)

    def test_one_that_runs_ends_when_another_definition_is_applied_and_fails_no_job(self):
        leader = self.start_operator("operator-0")
        leader.wait_until_it_leads()
        standby = self.start_operator("operator-1")
        standby.wait_until_ready()
        self.apply(job())
        pods = self.wait_for_pods("digits-0-0", "digits-1-0")
        self.change_definition(self.make_newer)
        wait_until(lambda: "tomorrow" in self.get("tj", "digits")["spec"], "the API server to give the job the field", between=LOOK)
        self.kubectl("annotate", "tj", "digits", "touched=yes")  # the operator is told of it
        for operator in (leader, standby):
            self.assertIn("is newer than this operator, which does not know spec.tomorrow", self.end_of(operator))
        self.assertNotIn("completionTime", self.get("tj", "digits")["status"])
        self.assertEqual({name: pod["metadata"]["uid"] for name, pod in self.pods().items()},
                         {name: pod["metadata"]["uid"] for name, pod in pods.items()})


class OperatorWorkers(OperatorTest):
    """Launchers and trainers of this machine in the place of those that kubelets would start."""

    def token_of(self, pod):
        return self.kubectl("create", "token", "default", f"--audience={AUDIENCE}", "--bound-object-kind=Pod", f"--bound-object-name={pod}").strip()

    def launch(self, pod, index, token=None):
        name = pod["metadata"]["name"]
        fields = {"metadata.name": name, "metadata.uid": pod["metadata"]["uid"], "status.podIP": f"127.0.0.{index + 2}"}
        environment = {}
        for entry in pod["spec"]["containers"][0]["env"]:
            field = entry.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
            environment[entry["name"]] = fields[field] if field else entry.get("value", "")
        token_file = self.folder / f"{name}.token"
        token_file.write_text(token or self.token_of(name), encoding="utf-8")
        checkpoints = self.folder / "checkpoints"
        checkpoints.mkdir(exist_ok=True)
        config = environment["RINGMASTER_TRAINER_CONFIG"].replace("/ringmaster/checkpoints", str(checkpoints))
        environment.update(RINGMASTER_TOKEN_FILE=str(token_file), RINGMASTER_WORKSPACE=str(ROOT / "examples/digits"),
                           RINGMASTER_TRAINER_CONFIG=config)
        with open(self.folder / f"{name}.log", "w", encoding="utf-8") as log:
            launcher = subprocess.Popen([BIN / "ringmaster-launcher"], env={**os.environ, **environment}, stdout=log, stderr=log,
                                        cwd=ROOT / "examples/digits")
        self.addCleanup(self.stop, launcher)
        return launcher

    @staticmethod
    def stop(launcher):
        if launcher.poll() is None:
            launcher.kill()
        launcher.wait(timeout=60)

    def set_phase(self, name, phase, **container_state):
        state = {"phase": phase}
        if container_state:
            state["containerStatuses"] = [{"name": "worker", "image": "worker:1", "imageID": "", "ready": phase == "Running",
                                           "restartCount": 0, "state": container_state}]
        self.patch_status("pod", name, state)

    def start_job(self):
        self.start_operator().wait_until_it_leads()
        self.apply(job({"spec.workers": {"replicas": 2, "template": BY_HAND}, "spec.trainer.data.csv.scale": 16}))
        pods = self.wait_for_pods("digits-0-0", "digits-1-0")
        for name in pods:
            self.set_phase(name, "Running", running={"startedAt": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())})
        return [pods[name] for name in sorted(pods)]

    def test_they_join_by_their_tokens_and_train_to_the_end(self):
        launchers = [self.launch(pod, index) for index, pod in enumerate(self.start_job())]
        codes = [launcher.wait(timeout=300) for launcher in launchers]
        self.assertEqual(codes, [0, 0], (self.folder / "digits-0-0.log").read_text(encoding="utf-8"))
        for name in ("digits-0-0", "digits-1-0"):
            self.set_phase(name, "Succeeded", terminated={"exitCode": 0, "reason": "Completed"})
        status = wait_until(lambda: (lambda found: found if found.get("state") == "Succeeded" else None)(
            self.get("tj", "digits")["status"]), lambda: f"the end: {self.get('tj', 'digits')['status']}", between=LOOK)
        self.assertEqual(status["round"], 1)
        self.assertEqual([member["pod"] for member in status["members"]], ["digits-0-0", "digits-1-0"])
        self.assertTrue(status["result"]["weightsSha256"])

    def test_the_token_of_a_pod_that_was_replaced_is_refused(self):
        first, _ = self.start_job()
        token = self.token_of("digits-0-0")
        self.kubectl("delete", "pod", "digits-0-0", "--grace-period=0", "--force")
        successor = wait_until(lambda: next((pod for pod in self.pods().values() if pod["metadata"]["name"] == "digits-0-0" and
                                             pod["metadata"]["uid"] != first["metadata"]["uid"]), None), "another pod of its name", between=LOOK)
        self.set_phase("digits-0-0", "Running", running={"startedAt": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())})
        with self.subTest("as itself"):
            self.assertEqual(self.launch(first, 0, token=token).wait(timeout=120), 75)
        with self.subTest("as its successor, which may yet get a better one"):
            self.launch(successor, 0, token=token)
            log = self.folder / "digits-0-0.log"
            wait_until(lambda: "the token is not known to the cluster" in log.read_text(encoding="utf-8"), lambda: log.read_text(encoding="utf-8"))
            self.assertEqual(self.get("tj", "digits")["status"]["workers"]["ready"], 0)

    def test_the_token_of_another_jobs_worker_is_refused(self):
        first, _ = self.start_job()
        other = job({"metadata.name": "other", "spec.workers": {"replicas": 1, "template": BY_HAND}})
        self.apply(other)
        wait_until(lambda: self.kubectl("get", "pod", "other-0-0", "--ignore-not-found"), "the other job's pod", between=LOOK)
        launcher = self.launch(first, 0, token=self.token_of("other-0-0"))
        self.assertEqual(launcher.wait(timeout=120), 75)
        self.assertIn("the token is of pod", (self.folder / "digits-0-0.log").read_text(encoding="utf-8"))

    def test_one_that_shows_anothers_token_is_refused(self):
        first, _ = self.start_job()
        launcher = self.launch(first, 0, token=self.token_of("digits-1-0"))
        self.assertEqual(launcher.wait(timeout=120), 75)
        self.assertIn("the token is of pod", (self.folder / "digits-0-0.log").read_text(encoding="utf-8"))


class OperatorLeaders(OperatorTest):
    def holder(self):
        return self.get("lease", NAME)["spec"].get("holderIdentity", "").rsplit("_", 1)[0]

    def start_two(self):
        first = self.start_operator("operator-0", LEASE)
        first.wait_until_it_leads()
        second = self.start_operator("operator-1", LEASE)
        second.wait_until_ready()
        self.assertEqual(self.holder(), "operator-0")
        self.assertFalse(second.leads())
        self.apply(job())
        return first, second, self.wait_for_pods("digits-0-0", "digits-1-0")

    def wait_for_fail_over(self, second, after):
        """How long it takes until `second` leads, in seconds from now; printed for docs/operator.md."""
        began = time.monotonic()
        second.wait_until_it_leads()
        took = time.monotonic() - began
        print(f"fail-over after {after}: {took:.1f} s of a lease of {LEASE_SECONDS} s", flush=True)
        return took

    def assert_went_on(self, pods):
        """The pods are the same, and the new leader works."""
        self.kubectl("scale", "tj/digits", "--replicas=3")
        after = self.wait_for_pods("digits-0-0", "digits-1-0", "digits-2-0")
        for name, pod in pods.items():
            self.assertEqual(after[name]["metadata"]["uid"], pod["metadata"]["uid"])

    def test_when_the_leader_is_killed_the_other_takes_over_within_the_lease(self):
        first, second, pods = self.start_two()
        first.end(signal.SIGKILL)
        took = self.wait_for_fail_over(second, "SIGKILL")
        self.assertEqual(self.holder(), "operator-1")
        # The lease, a try's interval with its random part, and a slow machine.
        self.assertLess(took, LEASE_SECONDS + 15)
        self.assert_went_on(pods)

    def test_when_the_leader_is_asked_to_end_the_other_need_not_wait(self):
        first, second, pods = self.start_two()
        first.process.send_signal(signal.SIGTERM)
        self.wait_for_fail_over(second, "SIGTERM")
        self.assertEqual(first.process.wait(timeout=60), 0)
        self.assert_went_on(pods)

    def test_a_leader_that_was_stopped_for_long_ends_when_it_wakes(self):
        first, second, pods = self.start_two()
        first.process.send_signal(signal.SIGSTOP)
        self.wait_for_fail_over(second, "SIGSTOP")
        first.process.send_signal(signal.SIGCONT)
        self.assertEqual(first.process.wait(timeout=60), 75)
        self.assertIn("leadership lost", first.log.read_text(encoding="utf-8"))
        self.assert_went_on(pods)


if __name__ == "__main__":
    main()
