#!/usr/bin/env python3
"""An operator whose clock differs by an hour from the API server's, and from another operator's.

Which of them is right makes no difference: a proxy shifts all times between the two, so that workers and kubelet go by the server's clock.
"""
import datetime
import signal

from outages_test import BehindAProxy
from operator_process import NAME, OperatorTest, free_port
from story_test_case import FOREVER, PATIENT, digits, program
from testing import main

HOUR = 3600  # seconds


class ClockSkew(BehindAProxy):
    operator_flags = PATIENT

    def write_kubeconfig(self, account):
        path = super().write_kubeconfig(account)
        self.proxy.shift = self.shift
        return path

    def play(self):
        """A loss and an end, with every limit of time shorter than the clocks differ."""
        self.apply(digits(epochs=30, activeDeadlineSeconds=1800, startDeadlineSeconds=600, ttlSecondsAfterFinished=1800))
        self.wait_for_step(20)
        self.kubelet.kill("story-1-0")
        self.wait_for_round(2)
        self.wait_for_state("Succeeded")
        status = self.status()
        started = datetime.datetime.fromisoformat(status["startTime"].replace("Z", "+00:00"))
        ahead = (datetime.datetime.now(datetime.timezone.utc) - started).total_seconds()
        self.assertLess(abs(ahead - self.shift), 600, "the clocks did not differ")
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

    def lease(self):
        return self.get("lease", NAME)["spec"]

    def test_leads_until_it_is_gone_and_the_other_goes_on(self):
        self.operator.wait_until_it_leads()
        other, self.kubeconfig = self.put_proxy_before(OperatorTest.write_kubeconfig(self, "operator"))
        other.shift = -HOUR
        standby = self.start_operator("operator-1")
        standby.wait_until_ready()
        self.apply(program(FOREVER))
        self.wait_for_round(1, members=2)
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


if __name__ == "__main__":
    main()
