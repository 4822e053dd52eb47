#!/usr/bin/env python3
"""Credentials that change while a program runs, or fail, on a real API server: tokens in a file, and plugins that are run for one.

Tokens are bound to a Secret: when that is deleted, the API server refuses them, ten seconds later at most.
"""
import base64
import collections
import json
import os
import pathlib
import signal
import subprocess
import threading

from cluster_test_case import LOOK, job, kubectl, wait_until
from api_proxy import ApiProxy
from operator_process import OperatorTest
from story_test_case import PATIENT
from testing import BIN, DEADLINE, main
import binaries

API = "client.authentication.k8s.io/v1"


class CredentialsTest(OperatorTest):
    """All clients of a test reach the API server through a proxy, which counts what became of each token."""

    def setUp(self):
        super().setUp()
        view = json.loads(self.kubeconfig.read_text(encoding="utf-8"))
        cluster = view["clusters"][0]["cluster"]
        self.proxy = ApiProxy(cluster["server"], base64.b64decode(cluster["certificate-authority-data"]).decode())
        self.addCleanup(self.proxy.close)
        self.mutex = threading.Lock()
        self.refused, self.taken = collections.Counter(), collections.Counter()  # calls by token
        self.proxy.after_answer = self.note

    def note(self, authorization, status):
        token = (authorization or "").removeprefix("Bearer ")
        with self.mutex:
            (self.refused if status == 401 else self.taken)[token] += 1

    def kubeconfig_for(self, user, name="changing.kubeconfig"):
        """A kubeconfig that leads to the proxy as this user."""
        view = json.loads(self.kubeconfig.read_text(encoding="utf-8"))
        view["clusters"][0]["cluster"] = {"server": self.proxy.address}
        view["users"][0]["user"] = user
        path = self.folder / name
        path.write_text(json.dumps(view), encoding="utf-8")
        return path

    def issue(self, session):
        """A token of the operator's account that lives as long as the session."""
        self.kubectl("create", "secret", "generic", session)
        return self.kubectl("create", "token", "operator", "--bound-object-kind=Secret", f"--bound-object-name={session}").strip()

    def write(self, name, text):
        """Puts a file in place as kubelets do: it is there with all of its text, or not yet."""
        path = self.folder / name
        partial = path.with_suffix(".partial")
        partial.write_text(text, encoding="utf-8")
        partial.rename(path)
        return path

    def plugin(self, script, name="plugin", **options):
        """The user of a kubeconfig whose plugin runs this shell script in the test's folder. The file NAME.runs has a line for each run."""
        path = self.folder / name
        path.write_text(f'#!/bin/sh\ncd "$(dirname "$0")" && echo run >> {name}.runs\n{script}\n', encoding="utf-8")
        path.chmod(0o755)
        return {"exec": {"apiVersion": API, "command": f"./{name}", "interactiveMode": "Never", **options}}

    def runs(self, name="plugin"):
        path = self.folder / f"{name}.runs"
        return len(path.read_text(encoding="utf-8").splitlines()) if path.exists() else 0

    @staticmethod
    def answer(token):
        return json.dumps({"apiVersion": API, "kind": "ExecCredential", "status": {"token": token}})

    def start(self, user):
        self.kubeconfig = self.kubeconfig_for(user, "operator-changing.kubeconfig")
        return self.start_operator(arguments=PATIENT)

    def command(self, kubeconfig, *arguments):
        """`kubectl ringmaster ARGUMENTS` of somebody with this kubeconfig, running."""
        process = subprocess.Popen([binaries.find("kubectl"), "ringmaster", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True,
                                   env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "KUBECONFIG": str(kubeconfig)})
        self.addCleanup(lambda: process.poll() is None and (process.kill(), process.communicate()))
        return process

    def outcome(self, process):
        """(exit code, output, errors) of the command."""
        output, errors = process.communicate(timeout=DEADLINE)
        return process.returncode, output, errors

    def wait_until_refused(self, token, calls):
        wait_until(lambda: self.refused[token] >= calls, "the API server to refuse the token", between=LOOK)

    def wait_until_taken(self, token):
        wait_until(lambda: self.taken[token] > 0, "a call with the new token", between=LOOK)


class TokenFile(CredentialsTest):
    def test_one_that_is_renewed_too_late_is_read_again_at_the_next_call_and_the_operator_leads_on(self):
        first, second = self.issue("first"), self.issue("second")
        self.write("token", first + "\n")
        operator = self.start({"tokenFile": "token"})
        operator.wait_until_it_leads()
        self.kubectl("delete", "secret", "first")
        self.wait_until_refused(first, calls=2)
        self.write("token", second + "\n")
        stale = self.refused[first]
        self.wait_until_taken(second)
        self.apply(job())
        self.wait_for_pods("digits-0-0", "digits-1-0")
        self.assertTrue(operator.leads(), operator.log.read_text(encoding="utf-8"))
        self.assertLessEqual(self.refused[first] - stale, 3, "beyond calls in flight the old token was shown on")
        self.assertEqual(self.refused[second], 0)


class CredentialPlugin(CredentialsTest):
    def test_one_is_run_again_when_its_token_is_refused_and_no_call_fails(self):
        first, second = self.issue("first"), self.issue("second")
        self.write("answer", self.answer(first))
        operator = self.start(self.plugin("cat answer"))
        operator.wait_until_it_leads()
        self.apply(job())
        self.wait_for_pods("digits-0-0", "digits-1-0")
        kept = job({"metadata.name": "kept", "metadata.finalizers": ["test.ringmaster.dev/kept"], "spec.suspend": True})
        self.apply(kept)
        waiting = self.command(self.kubeconfig_for(self.plugin("cat answer", "persons")), "delete", "kept", "--wait", "--timeout", str(DEADLINE))
        wait_until(lambda: "deletionTimestamp" in self.get("tj", "kept")["metadata"], "the job to be on its way out", between=LOOK)
        self.assertEqual((self.runs(), self.runs("persons")), (1, 1))

        self.write("answer", self.answer(second))
        self.kubectl("delete", "secret", "first")
        wait_until(lambda: (self.runs(), self.runs("persons")) == (2, 2), "both plugins to run again", between=LOOK)
        self.wait_until_taken(second)
        self.kubectl("scale", "tj/digits", "--replicas=3")
        self.wait_for_pods("digits-0-0", "digits-1-0", "digits-2-0")
        self.kubectl("patch", "tj", "kept", "--type=merge", "-p", '{"metadata": {"finalizers": []}}')
        self.assertEqual(self.outcome(waiting), (0, "trainingjob.training.ringmaster.dev/kept deleted\n", ""))
        self.assertEqual((self.runs(), self.runs("persons")), (2, 2))
        self.assertTrue(operator.leads())
        self.assertGreaterEqual(self.refused[first], 2)  # the operator's and the person's
        self.assertNotIn("Unauthorized", operator.log.read_text(encoding="utf-8"))

    def test_one_is_run_again_before_its_token_expires_and_none_is_refused(self):
        admin = os.environ["RINGMASTER_TEST_KUBECONFIG"]
        operator = self.start(self.plugin(
            f'token=$({binaries.find("kubectl")} --kubeconfig={pathlib.Path(admin).resolve()} -n {self.namespace} create token operator) || exit 1\n'
            'expires=$(date -u -d "+7 seconds" +%Y-%m-%dT%H:%M:%SZ)\n'
            f'echo "{{\\"apiVersion\\": \\"{API}\\", \\"kind\\": \\"ExecCredential\\", '
            '\\"status\\": {\\"token\\": \\"$token\\", \\"expirationTimestamp\\": \\"$expires\\"}}"'))
        operator.wait_until_it_leads()
        self.apply(job())
        self.wait_for_pods("digits-0-0", "digits-1-0")
        wait_until(lambda: len(self.taken) >= 4, lambda: f"four tokens; there were {len(self.taken)} of {self.runs()} runs", between=LOOK)
        self.assertTrue(operator.leads())
        self.assertEqual(sum(self.refused.values()), 0)
        log = operator.log.read_text(encoding="utf-8")
        self.assertNotIn("cannot take or renew the lease", log)

    def test_one_may_give_a_certificate_instead_of_a_token(self):
        view = json.loads(kubectl("config", "view", "--raw", "--minify", "--flatten", "-o", "json"))
        person = view["users"][0]["user"]
        if "client-certificate-data" not in person:
            self.skipTest("who the cluster's kubeconfig names has no certificate that a plugin could print")
        certificate, key = (base64.b64decode(person[f"client-{part}-data"]).decode() for part in ("certificate", "key"))
        self.apply(job({"spec.suspend": True}))

        def get(**status):
            """`kubectl ringmaster get` at the API server itself: a proxy cannot pass a certificate on."""
            self.write("answer", json.dumps({"apiVersion": API, "kind": "ExecCredential", "status": status}))
            view["users"][0]["user"] = self.plugin("cat answer")
            path = self.write("certificate.kubeconfig", json.dumps(view))
            return self.outcome(self.command(path, "get", "--namespace", self.namespace))

        code, output, errors = get(clientCertificateData=certificate, clientKeyData=key)
        self.assertEqual((code, errors), (0, ""))
        self.assertIn("digits", output)
        self.assert_told(get(clientCertificateData=certificate), ["it printed a certificate without a key", "certificate.kubeconfig"])
        code, output, errors = get(clientCertificateData=certificate, clientKeyData="no key")
        self.assertEqual((code, output), (65, ""))
        self.assertRegex(errors, "certificate.kubeconfig, context .*: client key: ")

    def test_one_that_fails_says_so_where_it_is_used_and_no_message_has_what_it_printed(self):
        kubeconfig = self.kubeconfig_for(self.plugin("echo secret; exec sleep 1000", "hangs"), "hangs.kubeconfig")
        hanging = self.command(kubeconfig, "get")
        wrong = {
            "fails": ("echo secret; echo first >&2; echo 'the session has expired: run login' >&2; exit 3", {},
                      ["it ended with exit code 3: the session has expired: run login"]),
            "babbles": ("echo this is secret", {}, ["it printed no ExecCredential"]),
            "lags": (f"echo '{self.answer('secret').replace('/v1', '/v1beta1')}'", {}, [f"another apiVersion than {API}"]),
            "empty": (f"echo '{self.answer('')}'", {}, ["neither a token nor a certificate"]),
            "dies": ("echo secret; kill -9 $$", {}, ["it ended with exit code 137"]),
            "absent": ("", {"command": "no-such-plugin", "installHint": "get it from the cloud's page"},
                       ["no-such-plugin: not found; get it from the cloud's page"]),
            "unknown": (f"echo '{self.answer('secret')}'", {}, ["Unauthorized"]),
        }
        for name, (script, options, words) in wrong.items():
            with self.subTest(name):
                kubeconfig = self.kubeconfig_for(self.plugin(script, name, **options), f"{name}.kubeconfig")
                self.assert_told(self.outcome(self.command(kubeconfig, "get")), [*words, f"{name}.kubeconfig", "sign in again"])
        self.assertEqual(self.runs("unknown"), 2)  # its token was refused, so it was asked for another
        with self.subTest("to the operator"):
            operator = self.start(self.plugin("echo secret; echo 'no session' >&2; exit 3", "operators"))
            self.assertEqual(operator.process.wait(timeout=60), 1)
            log = operator.log.read_text(encoding="utf-8")
            self.assertIn("operators: it ended with exit code 3: no session", log)
            self.assertNotIn("secret", log)
        with self.subTest("hangs"):
            self.assert_told(self.outcome(hanging), ["hangs: it did not end in time", "hangs.kubeconfig"])

    def test_one_that_hangs_ends_with_the_command_that_is_interrupted(self):
        kubeconfig = self.kubeconfig_for(self.plugin("echo $$ > started.partial; mv started.partial started; exec sleep 1000"))
        command = self.command(kubeconfig, "get")
        started = self.folder / "started"
        wait_until(started.exists, "the plugin to run", between=LOOK)
        command.send_signal(signal.SIGINT)
        self.assertEqual(self.outcome(command), (-signal.SIGINT, "", ""))
        self.assertFalse(pathlib.Path(f"/proc/{started.read_text().strip()}").exists(), "the plugin was left behind")

    def assert_told(self, outcome, words):
        code, output, errors = outcome
        self.assertEqual((code, output), (1, ""), errors)
        for each in words:
            self.assertIn(each, errors)
        self.assertNotIn("secret", errors)


if __name__ == "__main__":
    main()
