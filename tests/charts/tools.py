"""What the chart's tests need: helm 4 and 3, the Prometheus operator and prometheus-discovery, of tests/cluster; promtool and prometheus, of Debian's package; and that
operator's definitions, of its Go module.

The package is taken apart into a cache, not installed: no root, and no service that starts. `tools.py` makes all of them; a test only finds
them, and is left out, with this as its reason, where they are not there.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
for _folder in ("support", "cluster"):
    sys.path.insert(0, str(ROOT / "tests" / _folder))
import binaries  # noqa: E402
import debian  # noqa: E402

CHART = ROOT / "charts/ringmaster"
MONITORING = "github.com/prometheus-operator/prometheus-operator"
HOW = "`make charts` makes it"


def helm():
    return "helm" if shutil.which("helm") else _built("helm")


def helm3():
    return _built("helm3")


def _built(name):
    try:
        return binaries.find(name)
    except binaries.Missing:
        raise unittest.SkipTest(f"{name} is not there; {HOW}")


def promtool():
    return _of_prometheus("promtool")


def prometheus():
    return _of_prometheus("prometheus")


def _of_prometheus(name):
    found = shutil.which(name) or debian.folder("prometheus") / "usr/bin" / name
    if not os.access(found, os.X_OK):
        raise unittest.SkipTest(f"{name} is not there; {HOW}")
    return str(found)


def prometheus_operator():
    return _built("prometheus-operator")


def prometheus_discovery():
    """Finds a cluster's pods and services for prometheus(), which Debian builds without that."""
    return _built("prometheus-discovery")


def _definitions():
    """The folder of the definitions, by the version of the program."""
    version = re.search(rf"\b{MONITORING} (v\S+)", (binaries.source("prometheus-operator") / "go.mod").read_text())[1]
    return debian.CACHE / f"prometheus-operator@{version}"


def monitoring_definitions(*kinds):
    """The files of the CustomResourceDefinitions of these kinds; of those that the chart may have objects of, where none is named."""
    folder = _definitions()
    files = [folder / f"monitoring.coreos.com_{kind}.yaml" for kind in kinds or ("servicemonitors", "podmonitors", "prometheusrules")]
    if not all(file.exists() for file in files):
        raise unittest.SkipTest(f"the Prometheus operator's definitions are not there; {HOW}")
    return files


def run(*command, stdin=None, check=True):
    """What it printed; with `check` off (exit code, output and errors)."""
    done = subprocess.run([str(word) for word in command], input=stdin, capture_output=True, text=True, timeout=300)
    if not check:
        return done.returncode, done.stdout + done.stderr
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}:\n{done.stdout}{done.stderr}")
    return done.stdout


def template(*arguments, namespace="ringmaster-system", check=True, by=helm):
    return run(by(), "template", "ringmaster", CHART, "--namespace", namespace, *arguments, check=check)


def make():
    try:
        helm(), helm3()
    except unittest.SkipTest:
        binaries.build("helm")
    try:
        prometheus_operator(), prometheus_discovery()
    except unittest.SkipTest:
        binaries.build("monitoring")
    try:
        promtool(), prometheus()
    except unittest.SkipTest:
        debian.take_apart("prometheus")
    try:
        monitoring_definitions()
    except unittest.SkipTest:
        fetch_monitoring_definitions()


def fetch_monitoring_definitions():
    answer = subprocess.run([binaries.find_go(), "mod", "download", "-json", MONITORING], cwd=binaries.source("prometheus-operator"),
                            capture_output=True, text=True)
    if answer.returncode != 0:
        raise SystemExit(f"{MONITORING} cannot be fetched: {answer.stdout}{answer.stderr}")
    source = pathlib.Path(json.loads(answer.stdout)["Dir"]) / "example/prometheus-operator-crd"
    target = _definitions()
    target.mkdir(parents=True, exist_ok=True)
    for file in source.glob("*.yaml"):
        shutil.copy(file, target)


if __name__ == "__main__":
    try:
        make()
    except (binaries.Missing, debian.Missing) as error:
        sys.exit(str(error))
