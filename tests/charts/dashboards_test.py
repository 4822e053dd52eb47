#!/usr/bin/env python3
"""Every query of both dashboards, put to a real Prometheus that scrapes a real run, returns data.

`dashboards_test.py --pictures` also draws what was returned into docs/images/dashboard-*.svg.
"""
import json
import math
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

import tools
from testing import ROOT, main, wait_until

sys.path.insert(0, str(ROOT / "tests/e2e"))
from ringmaster_run import Run  # noqa: E402

NAMESPACE, OPERATOR, JOB = "default", "ringmaster", "digits"
RATE_INTERVAL = "10s"
METRICS_PORT = 7472
# Long enough to be looked at, with a checkpoint often enough to be in every rate.
TRAINING = ["--set", "spec.trainer.epochs=5000", "--set", "spec.checkpoint.everySteps=20"]
# As the chart's ServiceMonitor and PodMonitor label what they find.
PROMETHEUS = {
    "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
    "scrape_configs": [{"job_name": OPERATOR, "file_sd_configs": [{"files": ["operator.json"], "refresh_interval": "1s"}]},
                       {"job_name": "ringmaster-workers", "file_sd_configs": [{"files": ["workers.json"], "refresh_interval": "1s"}]}]}


def panels():
    """(dashboard, panel, query) of every query, with the variables that Grafana would put in."""
    for name in ("operator", "job"):
        for panel in json.loads((tools.CHART / f"files/dashboards/{name}.json").read_text())["panels"]:
            for target in panel["targets"]:
                query = target["expr"]
                for variable, value in (("$__rate_interval", RATE_INTERVAL), ("$namespace", NAMESPACE), ("$operator", OPERATOR), ("$job", JOB)):
                    query = query.replace(variable, value)
                yield name, panel, target, query


class Prometheus:
    def __init__(self, folder):
        self.folder = folder
        (folder / "prometheus.yml").write_text(json.dumps(PROMETHEUS))
        self.log = open(folder / "prometheus.log", "w+")
        self.process = subprocess.Popen(
            [tools.prometheus(), "--config.file=prometheus.yml", "--web.listen-address=127.0.0.1:0", f"--storage.tsdb.path={folder}/data"],
            cwd=folder, stdout=self.log, stderr=self.log)
        self.address = wait_until(self.find_address, lambda: f"Prometheus to listen; it says:\n{self.said()}", between=0.05)

    def find_address(self):
        if self.process.poll() is not None:
            raise AssertionError(f"Prometheus ended:\n{self.said()}")
        found = re.search(r'address=(127\.0\.0\.1:[1-9]\d*)', self.said())
        return found and found[1]

    def said(self):
        return (self.folder / "prometheus.log").read_text()

    def scrape(self, name, targets):
        """`targets`: [(address, labels)]."""
        entries = [{"targets": [address], "labels": labels} for address, labels in targets]
        written = self.folder / f"{name}.partial"
        written.write_text(json.dumps(entries))
        written.rename(self.folder / f"{name}.json")

    def ask(self, path, **arguments):
        url = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(arguments)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return json.load(answer)["data"]["result"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{arguments}: {error.read().decode()}")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


def has_data(result):
    return any(math.isfinite(float(series["value"][1])) for series in result)


class DashboardsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="ringmaster-dashboards-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.prometheus = Prometheus(cls.folder)
        cls.addClassCleanup(cls.prometheus.stop)
        (cls.folder / "run").mkdir()
        operator = f"127.0.0.1:{free_port()}"
        cls.run_ = Run(cls.folder / "run", ROOT / "examples/digits/job.yaml", *TRAINING, "--metrics-address", operator)
        cls.addClassCleanup(cls.run_.output.close)
        cls.addClassCleanup(cls.run_.kill)
        cls.run_.wait_for_step(50)
        cls.prometheus.scrape("operator", [(operator, {"namespace": NAMESPACE, "pod": "operator"})])
        cls.prometheus.scrape("workers", [
            (f"{member['address'].rsplit(':', 1)[0]}:{METRICS_PORT}",
             {"namespace": NAMESPACE, "training_job": JOB, "worker": str(member["rank"]), "pod": member["pod"]})
            for member in cls.run_.job()["status"]["members"]])

    def test_every_query_returns_data(self):
        waiting = {(name, panel["title"], query) for name, panel, _, query in panels()}
        self.assertGreater(len(waiting), 30)

        def all_answered():
            self.assertTrue(self.run_.running(), self.run_.text())
            waiting.difference_update([item for item in waiting if has_data(self.prometheus.ask("query", query=item[2]))])
            return not waiting
        wait_until(all_answered, lambda: "data for " + "; ".join(map(str, sorted(waiting))), deadline=120, between=0.5)

    def test_variables_list_the_operator_and_the_job(self):
        def values(name):
            board = json.loads((tools.CHART / f"files/dashboards/{name}.json").read_text())
            query = board["templating"]["list"][-1]["query"]["query"]
            series, label = re.fullmatch(r"label_values\((.*), (\w+)\)", query).groups()
            return {item["metric"].get(label) for item in self.prometheus.ask("query", query=series.replace("$namespace", NAMESPACE))}
        wait_until(lambda: values("operator") == {OPERATOR} and values("job") == {JOB}, "the variables' values", deadline=60, between=0.5)


def free_port():
    import socket
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


if __name__ == "__main__":
    main()
