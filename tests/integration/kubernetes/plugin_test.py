#!/usr/bin/env python3
"""`kubectl ringmaster` as its user meets it: a real kubectl finds the plugin on PATH, a real API server answers, a real operator acts."""
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile

from cluster_test_case import LOOK, ROOT, ClusterTest, job, kubectl, require_controllers, wait_until
from kubelet_api import KubeletApi
from story_test_case import FOREVER, StoryTest, program
from testing import BIN, DEADLINE, main, output_so_far
import binaries

QUALIFIED = "trainingjob.training.ringmaster.dev/"
DIGITS = ROOT / "examples/digits/job.yaml"
USER_ROLES = ROOT / "charts/ringmaster/templates/user-roles.yaml"
NOWHERE = "https://127.0.0.1:1"  # nobody listens there


class User:
    """Somebody with kubectl, the plugin on PATH, and a kubeconfig whose context names the namespace."""

    def __init__(self, folder, namespace, **cluster):
        self.kubeconfig = folder / "user.kubeconfig"
        config = json.loads(kubectl("config", "view", "--raw", "--flatten", "--minify", "-o", "json"))
        config["contexts"][0]["context"]["namespace"] = namespace
        config["clusters"][0]["cluster"].update(cluster)
        self.kubeconfig.write_text(json.dumps(config), encoding="utf-8")
        self._command = [binaries.find("kubectl"), "ringmaster"]
        self._environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "KUBECONFIG": str(self.kubeconfig)}

    def run(self, *arguments, stdin=None):
        """What became of `kubectl ringmaster ARGUMENTS`: returncode, stdout, stderr."""
        return subprocess.run([*self._command, *arguments], env=self._environment, input=stdin, capture_output=True, text=True, timeout=DEADLINE)

    def complete(self, *words):
        done = subprocess.run([binaries.find("kubectl"), "__complete", "ringmaster", *words], env=self._environment, capture_output=True,
                              text=True, timeout=DEADLINE)
        return done.stdout.splitlines()

    def start(self, output, *arguments):
        return subprocess.Popen([*self._command, *arguments], env=self._environment, stdin=subprocess.DEVNULL, stdout=output,
                                stderr=subprocess.STDOUT)


class PluginTest:
    """What both kinds of test below need: `self.user` and ways to look at what a command did."""

    def ok(self, *arguments, **options):
        done = self.user.run(*arguments, **options)
        self.assertEqual((done.returncode, done.stderr), (0, ""), f"{arguments}: {done.stdout}{done.stderr}")
        return done.stdout

    def fails(self, code, words, *arguments, **options):
        """The message; all of `words` are in it."""
        done = self.user.run(*arguments, **options)
        self.assertEqual(done.returncode, code, f"{arguments}: {done.stdout}{done.stderr}")
        self.assertEqual(done.stdout, "", arguments)
        for each in words:
            self.assertIn(each, done.stderr, arguments)
        return done.stderr

    def write(self, item, name="job.yaml"):
        path = self.folder / name
        path.write_text(json.dumps(item, indent=1), encoding="utf-8")  # JSON is YAML
        return str(path)


class Plugin(PluginTest, ClusterTest):
    """Without an operator: what the plugin and the API server make of a job."""

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix="ringmaster-plugin-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.user = User(self.folder, self.namespace)

    def replicas(self):
        return self.get("tj", "digits")["spec"]["workers"]["replicas"]

    def test_submit_says_every_mistake_by_line_and_sends_nothing(self):
        wrong = self.write(job({"spec.workers.minReplicas": 9, "spec.trainer.optimizer.sgd.momentun": 1}))
        self.fails(65, [f"{wrong}:", "spec.workers.minReplicas: 9 is more than", "momentun: unknown field; did you mean momentum?"],
                   "submit", "-f", wrong)
        self.fails(65, ["--set spec.nonsense"], "submit", "-f", str(DIGITS), "--set", "spec.nonsense=1")
        self.fails(66, ["none.yaml"], "submit", "-f", "none.yaml")
        self.fails(65, ["metadata.namespace is elsewhere"], "submit", "-n", self.namespace, "-f",
                   self.write(job({"metadata.namespace": "elsewhere"})))
        self.assertEqual(json.loads(self.kubectl("get", "tj", "-o", "json"))["items"], [])

    def test_submit_applies_what_is_written_and_tells_what_it_did(self):
        self.assertEqual(self.ok("submit", "-f", str(DIGITS)), f"{QUALIFIED}digits submitted in namespace {self.namespace}\n")
        self.assertEqual(self.ok("submit", "-f", str(DIGITS)), f"{QUALIFIED}digits unchanged in namespace {self.namespace}\n")
        self.assertIn("configured", self.ok("submit", "-f", str(DIGITS), "--workers", "2", "--set", "spec.workers.maxReplicas=4"))
        self.assertEqual(self.replicas(), 2)
        self.assertEqual(self.ok("submit", "-f", "-", "-o", "name", "--set", "metadata.name=other", stdin=DIGITS.read_text()), QUALIFIED + "other\n")

    def test_submitting_again_keeps_what_others_changed_unless_the_manifest_names_it(self):
        manifest = job()
        path = self.write(manifest)
        self.ok("submit", "-f", path)
        self.ok("scale", "digits", "--workers", "3")
        self.ok("suspend", "digits")
        refused = self.fails(75, [".spec.workers.replicas", "--force-conflicts"], "submit", "-f", path)
        self.assertNotIn("suspend", refused)
        del manifest["spec"]["workers"]["replicas"]
        self.ok("submit", "-f", self.write(manifest, "silent.yaml"))
        self.assertEqual((self.replicas(), self.get("tj", "digits")["spec"]["suspend"]), (3, True))
        self.ok("submit", "-f", path, "--force-conflicts")
        self.assertEqual(self.replicas(), 2)

    def test_get_lists_as_kubectl_does(self):
        self.assertIn(f"no jobs in namespace {self.namespace}", self.user.run("get").stderr)
        self.ok("submit", "-f", str(DIGITS))
        self.patch_status("tj", "digits", {"state": "Running", "round": 2, "workers": {"summary": "4/4"}, "restarts": {"total": 1},
                                           "progress": {"step": 12, "summary": "12/450", "loss": 0.25, "lastCheckpointStep": 10}})
        header, row = self.ok("get").splitlines()
        self.assertEqual(header.split(), self.kubectl("get", "tj").splitlines()[0].split())
        self.assertEqual(row.split()[:6], ["digits", "Running", "4/4", "12/450", "0.250", "1"])
        wide = self.ok("get", "digits", "-o", "wide").splitlines()
        self.assertEqual((wide[0].split()[-2:], wide[1].split()[-2:]), (["ROUND", "CHECKPOINT"], ["2", "10"]))
        self.assertIn([self.namespace, "digits"], [line.split()[:2] for line in self.ok("get", "-A").splitlines()])
        self.assertEqual(self.ok("get", "-o", "name"), QUALIFIED + "digits\n")
        self.assertEqual(json.loads(self.ok("get", "-o", "json"))["items"][0]["metadata"]["name"], "digits")
        # What is printed as YAML is what kubectl reads.
        self.kubectl("replace", "-f", "-", stdin=self.ok("get", QUALIFIED + "digits", "-o", "yaml"))

    def test_scale_names_the_bounds(self):
        self.ok("submit", "-f", self.write(job()))
        self.assertEqual(self.ok("scale", "digits", "--workers", "3"), f"{QUALIFIED}digits scaled from 2 to 3 workers\n")
        self.assertEqual(self.ok("scale", "tj/digits", "--workers", "3"), f"{QUALIFIED}digits has 3 workers already\n")
        self.fails(65, ["5 is more than maxReplicas (4)", "it may have 1 to 4 workers"], "scale", "digits", "--workers", "5")
        self.fails(64, ["0 is less than 1"], "scale", "digits", "--workers", "0")
        self.assertEqual(self.replicas(), 3)

    def test_what_is_over_cannot_be_changed(self):
        self.ok("submit", "-f", str(DIGITS))
        self.patch_status("tj", "digits", {"state": "Succeeded"})
        for command in (["suspend"], ["resume"], ["scale", "--workers", "2"]):
            self.fails(1, ["digits has Succeeded: there is nothing to " + command[0]], *command, "digits")
        self.assertIn("is not run again", self.user.run("submit", "-f", str(DIGITS)).stderr)

    def test_wrong_names_and_clusters_are_told_what_to_do(self):
        self.ok("submit", "-f", str(DIGITS))
        for command in (["get"], ["logs"], ["events"], ["suspend"], ["resume"], ["scale", "--workers", "2"], ["delete"]):
            self.fails(66, [f"digitz: no such job in namespace {self.namespace}", "there are: digits"], *command, "digitz")
        self.fails(65, ["context \"none\" is not there"], "get", "--context", "none")
        self.fails(66, ["no-such-file"], "get", "--kubeconfig", "no-such-file")
        self.fails(64, ["--output"], "get", "-o", "nonsense")
        self.assertEqual(self.user.run("nonsense").returncode, 64)
        self.user = User(self.folder, self.namespace, server=NOWHERE)
        self.fails(75, ["127.0.0.1:1", "is the API server running"], "get", "digits")
        # A server that serves no such kind.
        admin = json.loads(kubectl("config", "view", "--raw", "--minify", "-o", "json"))["clusters"][0]["cluster"]["server"]
        self.user = User(self.folder, self.namespace, server=admin + "/elsewhere")
        self.fails(66, ["knows no TrainingJobs", "chart"], "get", "digits")
        self.fails(66, ["knows no TrainingJobs"], "submit", "-f", str(DIGITS))

    def sign_in(self, token):
        config = json.loads(self.user.kubeconfig.read_text(encoding="utf-8"))
        config["users"][0]["user"] = {"token": token}
        self.user.kubeconfig.write_text(json.dumps(config), encoding="utf-8")

    def sign_in_as(self, account):
        self.kubectl("create", "serviceaccount", account)
        self.sign_in(self.kubectl("create", "token", account).strip())

    def test_missing_rights_are_named(self):
        self.sign_in_as("guest")
        self.fails(66, ["cannot get resource", "trainingjobs", "rbac.aggregate"], "get", "digits")
        self.fails(66, ["cannot list resource"], "get")
        self.sign_in("nobody's")
        self.fails(1, ["Unauthorized", "sign in again"], "get")

    def sign_in_with_role(self, role):
        """As somebody with the cluster's role `view` or `edit`, and with what the chart adds to it."""
        require_controllers()  # which put the role together
        rules = re.findall(r"resources: \[(.*)\]\n +verbs: \[(.*)\]", USER_ROLES.read_text(encoding="utf-8"))
        self.assertEqual(len(rules), 2)  # those of view, and what edit has beside them
        self.apply({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": f"jobs-{role}"}, "rules": [
            {"apiGroups": ["training.ringmaster.dev"], "resources": resources.split(", "), "verbs": verbs.split(", ")}
            for resources, verbs in (rules[:1] if role == "view" else rules)]})
        account = f"--serviceaccount={self.namespace}:{role}"
        self.kubectl("create", "rolebinding", f"jobs-{role}", f"--role=jobs-{role}", account)
        self.kubectl("create", "rolebinding", role, f"--clusterrole={role}", account)
        self.sign_in_as(role)

    def test_what_the_chart_adds_to_the_role_view_is_enough_to_look_and_to_change_nothing(self):
        self.ok("submit", "-f", self.write(job()))
        self.sign_in_with_role("view")
        for command in (["get"], ["get", "digits"], ["get", "digits", "-o", "yaml"]):
            self.ok(*command)
        self.fails(66, ["no pod now"], "logs", "digits")
        self.assertIn("nothing has happened", self.user.run("events", "digits").stderr)
        self.assertIn("digits", self.user.complete("get", ""))
        before = self.get("tj", "digits")["spec"]
        for command in (["scale", "digits", "-w3"], ["suspend", "digits"], ["delete", "digits"], ["submit", "-f", self.write(job({"spec.suspend": True}))]):
            self.fails(66, ["trainingjobs", "cannot "], *command)
        self.assertEqual(self.get("tj", "digits")["spec"], before)

    def test_what_the_chart_adds_to_the_role_edit_is_enough(self):
        self.sign_in_with_role("edit")
        self.ok("submit", "-f", self.write(job()))
        for command in (["get"], ["get", "digits"], ["scale", "digits", "-w3"], ["suspend", "digits"], ["resume", "digits"]):
            self.ok(*command)
        self.fails(66, ["no pod now"], "logs", "digits")
        self.assertIn("nothing has happened", self.user.run("events", "digits").stderr)
        self.assertEqual(self.ok("delete", "digits", "--wait"), f"{QUALIFIED}digits deleted\n")

    def test_kubectl_completes_commands_flags_jobs_and_namespaces(self):
        self.ok("submit", "-f", str(DIGITS))
        self.assertEqual(self.user.complete("su"), ["submit", "suspend", ":4"])
        self.assertEqual(self.user.complete("logs", "--fo"), ["--follow", ":4"])
        self.assertEqual(self.user.complete("logs", "di"), ["digits", ":4"])
        self.assertEqual(self.user.complete("get", "-n", self.namespace), [self.namespace, ":4"])
        self.assertEqual(self.user.complete("submit", "-f", ""), [":0"])


class PluginStory(PluginTest, StoryTest):
    """With an operator, and a kubelet that the API server can ask for logs."""

    def setUp(self):
        super().setUp()
        self.kubelet_api = KubeletApi(self.api, self.kubelet, self.namespace, self.folder)
        self.addCleanup(self.kubelet_api.close)
        self.user = User(self.folder, self.namespace)

    def submit(self, item):
        item["spec"]["workers"]["template"]["spec"]["nodeName"] = self.kubelet_api.node
        self.ok("submit", "-f", self.write(item))

    def ranks(self):
        return {member["rank"]: member["pod"] for member in self.status()["members"]}

    def test_logs_by_rank_by_worker_and_of_all(self):
        self.fails(66, ["no such job"], "logs", "story")
        self.submit(program(["sh", "-c", 'echo I am $RINGMASTER_POD_NAME; echo; printf "no end"; trap "exit 143" TERM; while :; do sleep 0.1; done']))
        self.wait_for_round(1, members=2)
        for rank, pod in self.ranks().items():
            self.wait(lambda pod=pod: "no end" in self.kubelet.log(pod), f"what {pod} writes")
            self.assertIn(f"I am {pod}\n", self.ok("logs", "story", "--rank", str(rank)))
        self.assertIn("I am story-1-0\n", self.ok("logs", "story", "--worker", "1"))
        every = self.ok("logs", "story")
        self.assertIn("story-0-0  I am story-0-0\n", every)
        self.assertIn("story-1-0  I am story-1-0\n", every)
        first, *_ = self.ok("logs", "story", "--worker", "0", "--timestamps").splitlines()
        self.assertRegex(first, r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z ")
        whole = self.ok("logs", "story", "--worker", "0").splitlines()
        self.assertEqual(self.ok("logs", "story", "--worker", "0", "--tail", "1").splitlines(), whole[-1:])
        self.fails(66, ["no rank 2 in round 1; there are ranks 0 to 1"], "logs", "story", "--rank", "2")
        self.fails(66, ["nothing is left of an earlier pod"], "logs", "story", "--previous")
        for follow in ([], ["--follow"]):
            self.fails(66, ["no worker 8; there are workers 0 to 7"], "logs", "story", "--worker", "8", *follow)
            self.fails(66, ["no container sidecar in story-0-0; there are: worker"], "logs", "story", "-w0", "-c", "sidecar", *follow)
        self.fails(64, ["--rank"], "logs", "story", "--rank", "0", "--worker", "0")

    def test_follow_shows_every_line_once_across_breaks_and_replacements_until_the_end(self):
        count = 'i=0; while [ ! -e go ]; do i=$((i+1)); echo line $i of $RINGMASTER_POD_NAME; sleep 0.1; done; echo done'
        self.submit(program(["sh", "-c", count]))
        self.wait_for_round(1, members=2)
        output = tempfile.TemporaryFile()
        self.addCleanup(output.close)
        follower = self.user.start(output, "logs", "story", "--follow")
        self.addCleanup(lambda: follower.poll() is None and (follower.kill(), follower.wait()))

        def text():
            return output_so_far(output)
        self.wait(lambda: "line 5 of story-1-0" in text(), lambda: f"lines of story-1-0; there are {text()}")
        asked = len(self.kubelet_api.requests)
        self.kubelet_api.broken.set()
        self.wait(lambda: len(self.kubelet_api.requests) >= asked + 2, "the logs to be asked for again")
        self.kubelet_api.broken.clear()
        self.kubelet.kill("story-1-0", signal.SIGKILL)
        self.wait(lambda: "line 3 of story-1-1" in text(), lambda: f"lines of story-1-1; there are {text()}")
        self.assertIsNone(follower.poll())
        (self.folder / "go").touch()
        self.wait_for_state("Succeeded")
        self.assertEqual(follower.wait(timeout=DEADLINE), 0, text())
        shown = text()
        for pod in ("story-0-0", "story-1-0", "story-1-1"):
            written = re.findall(rf"^line \d+ of {pod}$", self.kubelet.log(pod), re.MULTILINE)
            told = re.findall(rf"^{pod}  (line \d+ of {pod})$", shown, re.MULTILINE)
            if pod == "story-1-0":  # what it wrote last goes with the pod, which the operator removes at once
                self.assertGreaterEqual(len(told), 5, shown)
                written = written[:len(told)]
            self.assertEqual(told, written, pod)
        self.assertIn("story-1-1  done\n", shown)
        previous = self.user.run("logs", "story", "--worker", "1", "--previous")
        self.assertEqual(previous.returncode, 0, previous.stderr)
        self.assertIn("story-1-0: Worker 1", previous.stdout)

    def test_life_of_a_job(self):
        self.submit(program(FOREVER))
        self.wait_for_round(1, members=2)
        detail = self.ok("get", "story")
        self.assertIn(f"2 workers in namespace {self.namespace}", detail)
        self.assertRegex(detail, rf"0 +0 +story-0-0 +{self.kubelet_api.node} +Running")
        self.assertRegex(detail, r"Training +True")
        # Events are written beside what they tell of: until the first is there, `events` says that there is none.
        self.wait(lambda: "RoundStarted" in self.user.run("events", "story").stdout, "the event of the round")
        self.assertIn("LAST SEEN", self.ok("events", "story"))
        self.assertIn("scaled from 2 to 3 workers", self.ok("scale", "story", "--workers", "3"))
        self.wait_for_round(2, members=3)
        self.assertEqual(self.ok("suspend", "story"), f"{QUALIFIED}story suspended\n")
        self.assertEqual(self.ok("suspend", "story"), f"{QUALIFIED}story is suspended already\n")
        self.wait(lambda: not self.pods(with_deleted=True), "the end of the pods")
        for follow in ([], ["--follow"]):
            self.fails(66, ["no pod now; the job is Suspended"], "logs", "story", *follow)
        self.assertEqual(self.ok("resume", "story"), f"{QUALIFIED}story resumed\n")
        self.assertEqual(self.ok("resume", "story"), f"{QUALIFIED}story is not suspended\n")
        self.wait_for_round(3, members=3)
        self.assertEqual(self.ok("delete", "story", "--wait"), f"{QUALIFIED}story deleted\n")
        self.assertIsNone(self.job())
        self.assertEqual(self.pods(with_deleted=True), {})
        self.assertIn("RoundStarted", self.ok("events", "story"))  # they outlive it

    def shown(self, *words):
        """What `get` shows of the job once all of `words` are in it."""
        last = []

        def there():
            last[:] = [self.ok("get", "story")]
            return all(word in last[0] for word in words)
        self.wait(there, lambda: f"{words} in {last}")
        return last[0]

    def test_get_tells_what_the_kubelet_says_of_pods_that_do_not_start(self):
        missing = 'MountVolume.SetUp failed for volume "settings" : configmap "settings" not found'
        self.kubelet.withhold("mine", "ContainerCreating", "", warning=("FailedMount", missing))
        self.submit(program(FOREVER))
        both = re.compile(r"(?m)^  story-0-0, story-1-0 +[0-9.]+ m?s +FailedMount +MountVolume")
        self.wait(lambda: both.search(self.ok("get", "story")), "one row for both pods")  # they are warned of one after another
        self.assertRegex(self.shown(missing), r"(?m)^  PENDING +LAST SEEN +WARNING +MESSAGE$")
        self.kubelet.provide("mine")
        self.wait_for_round(1, members=2)
        self.assertNotIn("FailedMount", self.ok("get", "story"))

    def test_get_tells_what_the_scheduler_says_of_pods_that_find_no_node(self):
        item = program(FOREVER, workers=1)
        item["spec"]["workers"]["template"]["spec"]["nodeSelector"] = {"disk": "none-has-this"}
        self.ok("submit", "-f", self.write(item))
        shown = self.shown("FailedScheduling")
        self.assertRegex(shown, r"(?m)^  story-0-0 +[0-9.]+ m?s +FailedScheduling +\d+/\d+ nodes are available: .* didn't match")

    def test_delete_that_is_waited_for_in_vain_names_what_is_left(self):
        self.submit(program(FOREVER, workers=1))
        self.wait_for_round(1, members=1)
        self.kubelet.cut_off("story-0-0")
        self.fails(75, ["story: not gone after 2 s", "story-0-0", "goes on deleting"], "delete", "story", "--wait", "--timeout", "2")
        self.kubectl("delete", "pod", "story-0-0", "--force", "--grace-period=0")
        wait_until(lambda: self.job() is None, "the end of the job", between=LOOK)


if __name__ == "__main__":
    main()
