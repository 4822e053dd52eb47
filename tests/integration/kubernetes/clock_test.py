#!/usr/bin/env python3
"""An operator whose clock is wrong by most of an hour, against API server, kubelet and workers whose clocks are right."""
import datetime
import os

from outages_test import BehindAProxy  # plain HTTP: a certificate that is made for the tests would not be valid yet, or no more
from story_test_case import PATIENT, digits
from testing import BIN, main

SHIFT = 50 * 60  # seconds


class ClockSkew(BehindAProxy):
    operator_flags = PATIENT

    def start_operator(self, *arguments):
        os.environ.update(LD_PRELOAD=str(BIN.parent / "tests/libshifted_clock.so"), RINGMASTER_TEST_CLOCK_SHIFT=str(self.shift))
        try:
            return super().start_operator(*arguments)
        finally:
            del os.environ["LD_PRELOAD"], os.environ["RINGMASTER_TEST_CLOCK_SHIFT"]

    def play(self):
        self.apply(digits(epochs=30, activeDeadlineSeconds=900, startDeadlineSeconds=600))
        self.wait_for_step(20)
        self.kubelet.kill("story-1-0")
        self.wait_for_round(2)
        self.wait_for_state("Succeeded")
        status = self.status()
        started = datetime.datetime.fromisoformat(status["startTime"].replace("Z", "+00:00"))
        off = (started - datetime.datetime.now(datetime.timezone.utc)).total_seconds()
        self.assertLess(abs(off - self.shift), 300, "the operator's clock was not shifted")
        self.assertEqual(self.restarts(), 1)
        self.assertLess(sum(status["lostSeconds"].values()), 300)


class ClockAhead(ClockSkew):
    shift = SHIFT

    def test_operator_whose_clock_is_ahead_loses_nothing(self):
        self.play()


class ClockBehind(ClockSkew):
    shift = -SHIFT

    def test_operator_whose_clock_is_behind_loses_nothing(self):
        self.play()


if __name__ == "__main__":
    main()
