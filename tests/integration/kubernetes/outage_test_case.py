"""Stories in which the operator reaches the API server through a proxy of the test's, and those in which it is killed on the way and started again."""
import base64
import collections
import json
import signal

from story_test_case import StoryTest
from api_proxy import ApiProxy

# What an operator writes that says how far it has come. Events and reviews carry no state; a lease is the election's.
STATE = ("trainingjobs", "trainingjobs/status", "pods", "services", "podgroups", "secrets")


class BehindAProxy(StoryTest):
    """The operator reaches the API server through a proxy of the test's."""
    operator_flags = ()

    def write_kubeconfig(self, account):
        self.proxy, path = self.put_proxy_before(super().write_kubeconfig(account))
        return path

    def put_proxy_before(self, kubeconfig):
        """A proxy, and a kubeconfig that leads through it to where the given one leads."""
        view = json.loads(kubeconfig.read_text())
        cluster = view["clusters"][0]["cluster"]
        proxy = ApiProxy(cluster["server"], base64.b64decode(cluster["certificate-authority-data"]).decode())
        self.addCleanup(proxy.close)
        view["clusters"][0]["cluster"] = {"server": proxy.address}
        path = kubeconfig.with_name(f"proxy-{proxy.address.rsplit(':', 1)[1]}.kubeconfig")
        path.write_text(json.dumps(view))
        return proxy, path

    def created(self, resource, of=""):
        """The names in the POSTs of this resource that the API server has taken, of those that begin with `of`."""
        names = [json.loads(body)["metadata"]["name"] for method, path, body in self.proxy.writes if method == "POST" and resource_of(path) == resource]
        return [name for name in names if name.startswith(of)]

    def suspend(self, value):
        self.kubectl("patch", "tj", "story", "--type=merge", "-p", json.dumps({"spec": {"suspend": value}}))

    def expire(self, name="story"):
        """Lets the job's time after its end be over."""
        self.kubectl("patch", "tj", name, "--type=merge", "-p", '{"spec": {"ttlSecondsAfterFinished": 1}}')


def resource_of(path):
    """"pods", "trainingjobs/status", …; None for what is in no namespace."""
    _, _, place = path.split("?")[0].partition("/namespaces/")
    _, *rest = place.split("/")
    return "/".join(rest[::2]) or None


def what_is_written(method, path, body):
    """A write of state without what differs from run to run; None for all others."""
    resource = resource_of(path)
    if resource not in STATE:
        return None
    content = json.loads(body or "{}")
    status = content.get("status", {})
    said = [(item["type"], item["status"], item["reason"]) for item in status.get("conditions", [])]
    return json.dumps([method, path.split("?")[0], content.get("metadata", {}).get("name"), sorted(status), status.get("state"), status.get("round"),
                       status.get("workers"), said])


class Mortal(BehindAProxy):
    """The operator is killed, and started again while the test waits for something."""
    operator_flags = ("--no-leader-elect",)  # or each start would wait for the lease of the one before

    def setUp(self):
        self.operators = {}  # by pod
        self.leader = "operator-0"
        self.starts = 0
        super().setUp()

    def start_operator(self, pod="operator-0", arguments=()):
        self.operators[pod] = super().start_operator(pod, arguments)
        return self.operators[pod]

    def kill_operator(self):
        self.operators[self.leader].process.send_signal(signal.SIGKILL)

    def until(self, condition, what):
        def look():
            for pod, operator in list(self.operators.items()):
                if operator.process.poll() is not None:
                    self.starts += 1
                    self.operator = self.start_operator(pod)
            return condition()
        return self.wait(look, what)

    def until_running(self, members, round_=1, name="story"):
        def runs():
            status = self.status(name)
            return status.get("state") == "Running" and status["round"] >= round_ and len(status["members"]) == members
        self.until(runs, lambda: f"{name}: round {round_} of {members}: {json.dumps(self.status(name))}")

    def until_step(self, step):
        self.until(lambda: self.status().get("progress", {}).get("step", 0) >= step, lambda: f"step {step}: {json.dumps(self.status())}")

    def until_suspended(self):
        self.until(lambda: self.condition("Suspended").get("status") == "True" and not self.pods(with_deleted=True), "the suspension")

    def until_pods(self, *names):
        self.until(lambda: sorted(self.pods(with_deleted=True)) == sorted(names),
                   lambda: f"pods {names}; there are {sorted(self.pods(with_deleted=True))}")

    def until_ended(self, state, name="story"):
        self.until(lambda: self.status(name).get("state") == state, lambda: f"{state}: {json.dumps(self.status(name))}")


class DiesAfterEachWrite(Mortal):
    """The operator is killed after each of its writes, before it has the answer, and started again: every story ends as it does without, and
    nothing is made twice.

    One run has all crash points of its story, one after another. Writes that `what_is_written` does not tell apart are one point: workers that
    join one by one would else never be seen together, and a trainer's steps are many.
    """

    def setUp(self):
        self.seen = set()
        self.died_after = collections.Counter()  # kinds of writes
        super().setUp()

    def write_kubeconfig(self, account):
        path = super().write_kubeconfig(account)
        self.proxy.after_write = self.die
        return path

    def point(self, method, path, body):
        """What makes a write another crash point than those before; None where it is none."""
        step = what_is_written(method, path, body)
        # What is made again after it has gone is another thing.
        return (step, len(self.proxy.writes)) if step and method == "POST" else step

    def die(self, method, path, body):
        point = self.point(method, path, body)
        if point is None or point in self.seen or self.leader not in self.operators:
            return
        self.seen.add(point)
        self.died_after[f"{method} {resource_of(path)}"] += 1
        self.kill_operator()

    def assert_died_after(self, *kinds):
        """Also that there was no other kind. What a story ends with may be written after what it waits for."""
        self.until(lambda: set(kinds) <= set(self.died_after), lambda: f"deaths after {kinds}; there were {dict(self.died_after)}")
        self.assertEqual(sorted(self.died_after), sorted(kinds))
        print(f"{self.starts} deaths: {dict(self.died_after)}", flush=True)
