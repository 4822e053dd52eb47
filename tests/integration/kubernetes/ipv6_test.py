#!/usr/bin/env python3
"""A cluster that has IPv6 alone: API server, operator, rendezvous and workers where not even 127.0.0.1 is there.

It runs in a network namespace of its own, with a cluster of its own.
"""
import ctypes
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

from story_test_case import FOREVER, LONG, StoryTest, digits, program  # first: it says where modules are looked for
import binaries
from testing import ROOT, main

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
NETWORK = "fd00:7::"
PODS = 16  # addresses for as many


def setUpModule():
    absent = binaries.missing(["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"])
    if absent:
        raise unittest.SkipTest(f"a cluster with IPv6 alone needs {', '.join(absent)}; {binaries.HOW}")
    enter_a_network_without_ipv4()
    folder = tempfile.mkdtemp(prefix="ringmaster-ipv6-")
    unittest.addModuleCleanup(shutil.rmtree, folder)
    os.environ.pop("RINGMASTER_TEST_KUBECONFIG", None)  # of the cluster outside, which cannot be reached from here
    cluster = ROOT / "tests/cluster"
    unittest.addModuleCleanup(subprocess.run, [sys.executable, "-B", cluster / "down", folder], check=True, timeout=60)
    subprocess.run([sys.executable, "-B", cluster / "up", folder, f"--address={NETWORK}1", "--nodes=1", "--for-parent"], check=True, timeout=500)
    os.environ["RINGMASTER_TEST_KUBECONFIG"] = f"{folder}/kubeconfig"


def enter_a_network_without_ipv4():
    """From here on this process, and all that it starts, has one interface with addresses of NETWORK."""
    libc, user, group = ctypes.CDLL(None, use_errno=True), os.geteuid(), os.getegid()
    if libc.unshare(CLONE_NEWNET if user == 0 else CLONE_NEWUSER | CLONE_NEWNET) != 0:
        raise unittest.SkipTest(f"this machine refuses a network namespace: {os.strerror(ctypes.get_errno())}")
    if user != 0:
        for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
            pathlib.Path("/proc/self", name).write_text(text)
    lines = ["link set lo up", "address del 127.0.0.1/8 dev lo", *(f"address add {NETWORK}{number:x}/128 dev lo nodad" for number in range(1, PODS + 3))]
    subprocess.run(["ip", "-batch", "-"], input="\n".join(lines), text=True, check=True, timeout=30)


class Ipv6Alone(StoryTest):
    address = f"{NETWORK}1"

    @staticmethod
    def pod_address(number):
        return f"{NETWORK}{number + 2:x}"

    def setUp(self):
        with self.assertRaises(OSError):
            socket.create_server(("127.0.0.1", 0))
        super().setUp()

    def test_a_job_trains_to_its_end_and_survives_a_killed_worker(self):
        self.apply(digits(epochs=LONG))
        self.wait_for_step(20)
        addresses = [member["address"] for member in self.status()["members"]]
        self.assertEqual([address.startswith(f"[{NETWORK}") for address in addresses], [True, True], addresses)
        self.kubelet.kill("story-1-0")
        self.wait_for_round(2)
        self.wait_for_state("Succeeded")
        self.assertEqual(self.restarts(), 1)

    def test_a_program_is_told_the_bare_address_of_its_first_worker(self):
        words = ["sh", "-c", 'echo "master $MASTER_ADDR"; ' + FOREVER[2]]
        job = program(words)
        job["spec"]["launch"]["mode"] = "Torch"
        self.apply(job)
        address = self.wait_for_round(1, members=2)["members"][0]["address"]
        self.assertRegex(address, r"^\[fd00:7::[0-9a-f]+\]:29500$")
        bare = address[1:address.index("]")]
        self.wait(lambda: f"master {bare}\n" in self.kubelet.log("story-1-0"), lambda: self.kubelet.log("story-1-0"))


if __name__ == "__main__":
    main()
