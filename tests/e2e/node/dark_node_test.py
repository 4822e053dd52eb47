#!/usr/bin/env python3
"""A node goes dark in the middle of a job: it is not drained, it says nothing, nobody can reach it. Later it comes back."""
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess

from node_test_case import SYSTEM, NodeTest, main, processes, spread_over_nodes

UNREACHABLE = "node.kubernetes.io/unreachable"


class DarkNode:
    """A node whose kubelet, containerd and shims can be stopped, and whose pods can be cut off: their processes go on, as behind a dead switch."""

    def __init__(self, name):
        self._name, self._links = name, []

    def stop(self):
        self._signal(signal.SIGSTOP)

    def go_on(self):
        self._signal(signal.SIGCONT)

    def cut_off(self):
        self._links = self._find_links()
        self._set_links("down")
        return len(self._links)

    def connect(self):
        self._set_links("up")
        self._links = []

    def _signal(self, number):
        found = [pid for pid, _, command in processes() if self._is_of_node(command)]
        if len(found) < 2:
            raise AssertionError(f"kubelet and containerd of {self._name}: {found}")
        for pid in found:
            with contextlib.suppress(ProcessLookupError):  # a short-lived one, which has ended
                os.kill(pid, number)

    def _is_of_node(self, command):
        return (f"--hostname-override={self._name}" in command or f"--config=/run/{self._name}/containerd.toml" in command
                or f"/run/{self._name}/containerd.sock" in command)

    def _find_links(self):
        """The nodes' ends of the interfaces of the pods here, found by the processes in the node's cgroup."""
        links = set()
        for pid, _, _ in processes():
            try:
                if f"/{self._name}/kubepods/" not in pathlib.Path(f"/proc/{pid}/cgroup").read_text():
                    continue
            except OSError:
                continue  # it has ended
            shown = subprocess.run(["nsenter", "--target", str(pid), "--net", "ip", "-json", "link", "show", "eth0"], capture_output=True, text=True)
            if shown.returncode == 0:
                links.add(json.loads(shown.stdout)[0]["link_index"])
        here = json.loads(subprocess.run(["ip", "-json", "link"], capture_output=True, text=True, check=True).stdout)
        return [link["ifname"] for link in here if link["ifindex"] in links]

    def _set_links(self, state):
        for link in self._links:
            subprocess.run(["ip", "link", "set", link, state], check=True)


class ANodeThatGoesDark(NodeTest):
    def leader(self):
        return self.get("lease", "ringmaster", namespace=SYSTEM)["spec"]["holderIdentity"].split("_")[0]

    def taints(self, name):
        return {(taint["key"], taint["effect"]) for taint in self.get("node", name)["spec"].get("taints", [])}

    def refused(self, workers):
        said = self.kubectl("logs", f"--namespace={SYSTEM}", self.leader())
        return all(re.search(rf"refused on the rendezvous port.*{worker} is terminating", said) for worker in workers)

    def uids(self, names):
        return {item["metadata"]["name"]: item["metadata"]["uid"] for item in self.get("pods")["items"] if item["metadata"]["name"] in names}

    def checkpoints_of_round(self, number):
        return {checkpoint["step"] for checkpoint in self.status().get("checkpoints", []) if checkpoint["round"] == number}

    def assert_lost_only(self, lost, survivors):
        """One incident, of a dark worker; the new leader has taken none of the others, who had to find it first, for silent."""
        self.assertEqual(self.uids(survivors), survivors)
        restarts = self.status()["restarts"]
        self.assertEqual(restarts["total"], 1, json.dumps(restarts))
        self.assertIn(restarts["recent"][0]["pod"], lost)

    def bring_back(self, node, name):
        try:
            node.connect()
        finally:
            node.go_on()
        self.wait(lambda: not self.taints(name), lambda: f"{name} without {self.taints(name)}")

    def test_its_workers_are_replaced_and_come_back_to_nothing(self):
        """The leading operator goes dark with them."""
        expected = self.long_job(spread_over_nodes)
        self.wait_for_checkpoint()
        leader = self.leader()
        dark = self.get("pod", leader, namespace=SYSTEM)["spec"]["nodeName"]
        lost = {name for name, pod in self.pods().items() if pod["spec"]["nodeName"] == dark}
        self.assertTrue(lost)
        survivors = self.uids(set(self.pods()) - lost)
        self.assertTrue(survivors)
        node = DarkNode(dark)
        self.addCleanup(self.bring_back, node, dark)
        node.stop()
        self.assertGreaterEqual(node.cut_off(), len(lost) + 1)

        self.wait(lambda: (UNREACHABLE, "NoExecute") in self.taints(dark), "the node controller to notice")
        self.wait(lambda: self.status().get("round", 0) > 1, lambda: f"the next round; the status is {json.dumps(self.status())}")
        self.assertNotEqual(self.leader(), leader)
        self.assertNotIn(dark, {pod["spec"].get("nodeName") for pod in self.pods().values()})
        self.assertFalse(lost & set(self.pods()))
        of_first_round = self.checkpoints_of_round(1)
        self.assert_lost_only(lost, survivors)

        node.connect()  # its kubelet is still stopped: nobody tells these workers that they are no longer wanted but who they talk to
        self.wait(lambda: self.refused(lost), lambda: f"{lost} to be refused")
        self.assertEqual(self.result(), expected)
        self.assert_lost_only(lost, survivors)
        self.assertLessEqual(self.checkpoints_of_round(1), of_first_round)  # what they have written since is none
        node.go_on()
        self.wait(lambda: not lost & {item["metadata"]["name"] for item in self.get("pods")["items"]}, f"the kubelet to remove {lost}")


if __name__ == "__main__":
    main()
