"""The programs that the chart's tests need: helm, of tests/cluster, and promtool and prometheus, of Debian's package.

The package is taken apart into a cache, not installed: no root, and no service that starts. `tools.py` makes all of them; a test only finds
them, and is left out, with this as its reason, where they are not there.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
for _folder in ("support", "cluster"):
    sys.path.insert(0, str(ROOT / "tests" / _folder))
import binaries  # noqa: E402

CHART = ROOT / "charts/ringmaster"
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "ringmaster" / "prometheus"
HOW = "`make charts` makes it"


def helm():
    if shutil.which("helm"):
        return "helm"
    try:
        return binaries.find("helm")
    except binaries.Missing:
        raise unittest.SkipTest(f"helm is not there; {HOW}")


def promtool():
    return _of_prometheus("promtool")


def prometheus():
    return _of_prometheus("prometheus")


def _of_prometheus(name):
    found = shutil.which(name) or CACHE / "usr/bin" / name
    if not os.access(found, os.X_OK):
        raise unittest.SkipTest(f"{name} is not there; {HOW}")
    return str(found)


def run(*command, stdin=None, check=True):
    """What it printed; with `check` off (exit code, output and errors)."""
    done = subprocess.run([str(word) for word in command], input=stdin, capture_output=True, text=True, timeout=300)
    if not check:
        return done.returncode, done.stdout + done.stderr
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}:\n{done.stdout}{done.stderr}")
    return done.stdout


def template(*arguments, namespace="ringmaster-system", check=True):
    return run(helm(), "template", "ringmaster", CHART, "--namespace", namespace, *arguments, check=check)


def make():
    try:
        helm()
    except unittest.SkipTest:
        binaries.build("helm")
    try:
        promtool(), prometheus()
    except unittest.SkipTest:
        take_prometheus_apart()


def take_prometheus_apart():
    CACHE.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE.parent) as folder:
        download = ["apt-get", "download", "-q", "prometheus"]
        if subprocess.run(download, cwd=folder, stdout=sys.stderr).returncode != 0:
            raise SystemExit("Debian's package prometheus cannot be fetched: run `apt-get update` as root, then this again")
        package, = pathlib.Path(folder).glob("prometheus_*.deb")
        subprocess.run(["dpkg-deb", "--extract", package, f"{folder}/root"], check=True)
        shutil.rmtree(CACHE, ignore_errors=True)
        os.rename(f"{folder}/root", CACHE)


if __name__ == "__main__":
    try:
        make()
    except binaries.Missing as error:
        sys.exit(str(error))
