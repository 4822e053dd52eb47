#!/usr/bin/env python3
"""An operator whose clock differs by an hour from the API server's, and from another operator's.

Which of them is right makes no difference: a proxy shifts all times between the two, so that workers and kubelet go by the server's clock, and so must what
the operator writes down.
"""
import datetime
import signal

from operator_process import NAME, OperatorTest
from outage_test_case import BehindAProxy
from story_test_case import FOREVER, LONG, PATIENT, digits, program
from testing import free_port, main

HOUR = 3600  # seconds


class ClockSkew(BehindAProxy):
    operator_flags = PATIENT

    def write_kubeconfig(self, account):
        path = super().write_kubeconfig(account)
        self.proxy.shift = self.shift
        return path

    def assert_by_the_servers_clock(self, *times):
        """Of something that has just happened."""
        for time in times:
            since = datetime.datetime.now(datetime.timezone.utc) - datetime.datetime.fromisoformat(time.replace("Z", "+00:00"))
            self.assertLess(abs(since.total_seconds()), 600, time)

    def play(self):
        """A loss and an end, with every limit of time shorter than the clocks differ."""
        self.apply(digits(epochs=LONG, activeDeadlineSeconds=1800, startDeadlineSeconds=600, ttlSecondsAfterFinished=1800))
        self.wait_for_step(20)
        self.kubelet.kill("story-1-0")
        self.wait_for_round(2)
        self.wait_for_state("Succeeded")
        status = self.status()
        self.assert_by_the_servers_clock(status["startTime"], status["completionTime"])
        self.assertEqual(self.restarts(), 1)
        self.assertEqual(len(self.created("pods")), 3, self.created("pods"))
        self.assertLess(sum(status["lostSeconds"].values()), 300)
        self.assertTrue(all(-1 <= seconds for seconds in status["lostSeconds"].values()), status["lostSeconds"])


class ServerAhead(ClockSkew):
    shift = HOUR

    def test_operator_behind_the_server_ends_nothing_early_and_loses_nothing(self):
        self.play()


class ServerBehind(ClockSkew):
    shift = -HOUR

    def test_operator_ahead_of_the_server_ends_nothing_early_and_loses_nothing(self):
        self.play()


class TwoClocks(ClockSkew):
    """Two operators, one an hour behind the server and one an hour ahead of it."""
    shift = HOUR
    operator_flags = ("--lease-duration=40", "--renew-deadline=30")

    def setUp(self):
        self.ports = {f"operator-{number}": free_port() for number in range(2)}
        self.operator_flags = (*self.operator_flags, "--rendezvous-endpoint=" + ",".join(f"127.0.0.1:{port}" for port in self.ports.values()))
        super().setUp()

    def start_operator(self, pod="operator-0", arguments=()):
        return OperatorTest.start_operator(self, pod, (*self.operator_flags, *arguments), self.ports[pod])

    def start_standby(self):
        """The other operator, when this one leads."""
        self.operator.wait_until_it_leads()
        other, self.kubeconfig = self.put_proxy_before(OperatorTest.write_kubeconfig(self, "operator"))
        other.shift = -HOUR
        standby = self.start_operator("operator-1")
        standby.wait_until_ready()
        return standby

    def lease(self):
        return self.get("lease", NAME)["spec"]

    def test_leads_until_it_is_gone_and_the_other_goes_on(self):
        standby = self.start_standby()
        self.apply(program(FOREVER, activeDeadlineSeconds=HOUR))  # half of what the operators' clocks differ by
        self.assert_by_the_servers_clock(self.wait_for_round(1, members=2)["startTime"])
        renewals = set()
        self.wait(lambda: renewals.add(self.lease()["renewTime"]) or len(renewals) > 5, "the leader to renew its lease")
        self.assertFalse(standby.leads(), "it took a lease that is held")
        self.assertEqual(self.lease().get("leaderTransitions", 0), 0)
        pids = [self.kubelet.pid(name) for name in ("story-0-0", "story-1-0")]
        self.operator.end(signal.SIGKILL)
        standby.wait_until_it_leads()
        self.kubectl("scale", "tj/story", "--replicas=3")
        self.wait_for_round(2, members=3)
        self.assertEqual([self.kubelet.pid(name) for name in ("story-0-0", "story-1-0")], pids)
        self.assertEqual((self.restarts(), sorted(self.pods(with_deleted=True))), (0, ["story-0-0", "story-1-0", "story-2-0"]))
        self.kubectl("patch", "tj", "story", "--type=merge", "-p", '{"spec": {"activeDeadlineSeconds": 1}}')
        self.wait_for_state("Failed")
        self.assertEqual(self.condition("Failed")["reason"], "DeadlineExceeded")
        self.assert_by_the_servers_clock(self.status()["completionTime"])

    def test_a_finished_job_stays_for_its_time_under_the_next_leader(self):
        standby = self.start_standby()
        self.apply(program(["true"], ttlSecondsAfterFinished=HOUR))
        self.wait_for_state("Succeeded")
        self.operator.end()
        standby.wait_until_it_leads()
        self.apply(program(FOREVER, name="next"))
        self.wait_for_round(1, members=2, name="next")  # by then it has looked at the other, too
        self.assertEqual(self.status()["state"], "Succeeded")
        self.kubectl("patch", "tj", "story", "--type=merge", "-p", '{"spec": {"ttlSecondsAfterFinished": 1}}')
        self.wait(lambda: self.job() is None, "the end of the job")


if __name__ == "__main__":
    main()
