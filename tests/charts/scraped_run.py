"""A real run of examples/digits, scraped by a real Prometheus, and the queries of the chart's dashboards."""
import json
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile

import tools
from prometheus import Prometheus
from testing import ROOT

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


class ScrapedRun:
    """The run and its Prometheus, from `start` to `stop`."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ringmaster-dashboards-"))
        self.prometheus = self.run = None

    def start(self):
        self.prometheus = Prometheus(self.folder, json.dumps(PROMETHEUS))
        (self.folder / "run").mkdir()
        with socket.create_server(("127.0.0.1", 0)) as free:
            operator = "127.0.0.1:%d" % free.getsockname()[1]
        self.run = Run(self.folder / "run", ROOT / "examples/digits/job.yaml", *TRAINING, "--metrics-address", operator)
        self.run.wait_for_step(50)
        self.scrape("operator", [(operator, {"namespace": NAMESPACE, "pod": "operator"})])
        self.find_targets()

    def scrape(self, name, targets):
        """`targets`: [(address, labels)]."""
        entries = [{"targets": [address], "labels": labels} for address, labels in targets]
        written = self.folder / f"{name}.partial"
        written.write_text(json.dumps(entries))
        written.rename(self.folder / f"{name}.json")

    def find_targets(self):
        """Has the trainers of the round in force scraped."""
        self.scrape("workers", [
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
