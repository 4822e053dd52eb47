"""A real run of examples/digits, scraped by a real Prometheus, and the queries of the chart's dashboards."""
import json
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request

import tools
from testing import ROOT, wait_until

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


class ScrapedRun:
    """The run and its Prometheus, from `start` to `stop`."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ringmaster-dashboards-"))
        self.prometheus = self.run = None

    def start(self):
        self.prometheus = Prometheus(self.folder)
        (self.folder / "run").mkdir()
        with socket.create_server(("127.0.0.1", 0)) as free:
            operator = "127.0.0.1:%d" % free.getsockname()[1]
        self.run = Run(self.folder / "run", ROOT / "examples/digits/job.yaml", *TRAINING, "--metrics-address", operator)
        self.run.wait_for_step(50)
        self.prometheus.scrape("operator", [(operator, {"namespace": NAMESPACE, "pod": "operator"})])
        self.find_targets()

    def find_targets(self):
        """Has the trainers of the round in force scraped."""
        self.prometheus.scrape("workers", [
            (f"{member['address'].rsplit(':', 1)[0]}:{METRICS_PORT}",
             {"namespace": NAMESPACE, "training_job": JOB, "worker": str(member["rank"]), "pod": member["pod"]})
            for member in self.run.job()["status"]["members"]])

    def stop(self):
        if self.run is not None:
            self.run.kill()
            self.run.output.close()
        if self.prometheus is not None:
            self.prometheus.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
