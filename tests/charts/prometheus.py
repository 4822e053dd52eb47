"""A real Prometheus, Debian's, beside a test."""
import json
import re
import signal
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import tools
from testing import wait_until


class Prometheus:
    def __init__(self, folder, configuration):
        """Runs in the folder, which its configuration's relative paths begin from."""
        self.folder = folder
        (folder / "prometheus.yml").write_text(configuration)
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

    def reload(self, configuration):
        """Takes another configuration; returns when it is in force."""
        (self.folder / "prometheus.yml").write_text(configuration)
        loaded = self.said().count("Completed loading of configuration file")
        self.process.send_signal(signal.SIGHUP)
        wait_until(lambda: self.said().count("Completed loading of configuration file") > loaded or "Error reloading config" in self.said(),
                   "Prometheus to reload", between=0.05)
        if "Error reloading config" in self.said():
            raise AssertionError(self.said())

    def ask(self, path, **arguments):
        return self.get(path, **arguments)["result"]

    def get(self, path, **arguments):
        """The data of the answer of /api/v1/PATH."""
        url = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(arguments)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return json.load(answer)["data"]
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
