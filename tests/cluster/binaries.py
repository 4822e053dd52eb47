"""The programs of a Kubernetes cluster, built from Go modules at pinned versions.

They lie in a cache outside the tree, in one folder per module and content of its go.mod and go.sum, so that every checkout of the same
versions shares them and a build happens once. KUBEBUILDER_ASSETS, a folder of programs as other Kubernetes projects use it, goes first.
"""
import fcntl
import hashlib
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
GO_VERSION = "1.26.8"  # with 1.27 this API server's /openapi/v2 fails
HOW = "`make cluster` builds it (about 5 minutes, once)"

# Program: (module, package). What each set is for: README.md.
KUBERNETES = "k8s.io/kubernetes/cmd/"
CONTROL_PLANE = {
    "etcd": ("kubernetes", "go.etcd.io/etcd/server/v3"),
    "kube-apiserver": ("kubernetes", KUBERNETES + "kube-apiserver"),
    "kubectl": ("kubernetes", KUBERNETES + "kubectl"),
    "kube-controller-manager": ("kubernetes", KUBERNETES + "kube-controller-manager"),
    "kube-scheduler": ("kubernetes", KUBERNETES + "kube-scheduler"),
    "kwok": ("kubernetes", "sigs.k8s.io/kwok/cmd/kwok"),
}
HELM = {
    "helm": ("helm", "helm.sh/helm/v4/cmd/helm"),
    "helm3": ("helm3", "helm.sh/helm/v3/cmd/helm"),
}
NODE = {
    "kubelet": ("kubernetes", KUBERNETES + "kubelet"),
    "kube-proxy": ("kubernetes", KUBERNETES + "kube-proxy"),
    "coredns": ("coredns", "ringmaster.dev/tests/cluster/coredns"),
    "helm": HELM["helm"],
}
MONITORING = {  # what tests/charts needs beside helm
    "prometheus-operator": ("prometheus-operator", "github.com/prometheus-operator/prometheus-operator/cmd/operator"),
    "prometheus-discovery": ("prometheus-discovery", "ringmaster.dev/tests/cluster/prometheus-discovery"),
}
BENCHMARK = {  # of tests/bench/operator
    "load": ("load", "ringmaster.dev/tests/bench/operator/load"),
    "peer": ("peer", "ringmaster.dev/tests/bench/operator/peer"),
}
USABLE = ("etcd", "kube-apiserver", "kubectl")  # without these there is no cluster; tests name what else they need
SETS = {"control-plane": {**CONTROL_PLANE, "load": BENCHMARK["load"]}, "node": NODE, "helm": HELM, "monitoring": MONITORING,
        "benchmark": {**CONTROL_PLANE, **BENCHMARK},
        "all": {**CONTROL_PLANE, **NODE, "load": BENCHMARK["load"]}}
PROGRAMS = {**SETS["all"], **HELM, **MONITORING, **BENCHMARK}


class Missing(Exception):
    """A program that is not there; the message says how to get it."""


def find(name):
    """The path of a program; raises Missing."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    for folder in ([pathlib.Path(assets)] if assets else []) + [_folder(PROGRAMS[name][0])]:
        if os.access(folder / name, os.X_OK):
            return str(folder / name)
    raise Missing(f"{name} is not there; {HOW}")


def missing(names):
    """Those of the programs that `find` would not find."""
    absent = []
    for name in names:
        try:
            find(name)
        except Missing:
            absent.append(name)
    return absent


def check_usable():
    """Raises Missing where no cluster can be had."""
    for name in ("kubectl",) if os.environ.get("RINGMASTER_TEST_KUBECONFIG") else USABLE:
        find(name)


def build(name_of_set):
    """Builds what the set lacks; raises Missing with the reason and the mend. One build at a time per machine; others wait."""
    lacking = missing(SETS[name_of_set])
    if not lacking:
        return
    go = find_go()
    cache = _cache()
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say("waiting for another build of the cluster's programs")
            fcntl.flock(lock, fcntl.LOCK_EX)
        lacking = missing(SETS[name_of_set])
        for module in dict.fromkeys(PROGRAMS[name][0] for name in lacking):
            _build_module(go, module, [name for name in lacking if PROGRAMS[name][0] == module])


def _build_module(go, module, names):
    folder = _folder(module)
    folder.mkdir(parents=True, exist_ok=True)
    _say(f"fetching the sources of {', '.join(names)}")
    listed = subprocess.run([go, "list", "-deps", *(PROGRAMS[name][1] for name in names)], cwd=source(module), env=_environment(go),
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if listed.returncode != 0:
        raise Missing(f"the sources of {', '.join(names)} cannot be fetched: {_last_line(listed.stderr)}\n"
                      "the Go module proxy that `go env GOPROXY` names must be reachable; run it again when it is")
    _say(f"building {', '.join(names)} in {folder}")
    with tempfile.TemporaryDirectory(dir=folder) as partial:
        built = subprocess.run([go, "build", "-trimpath", "-p", str(os.cpu_count() or 1), "-ldflags", _ldflags(module),
                                f"-gcflags=all={_gcflags(module)}", "-o", f"{partial}/", *(PROGRAMS[name][1] for name in names)],
                               cwd=source(module), env=_environment(go), stdout=sys.stderr, stderr=subprocess.PIPE, text=True)
        if built.returncode != 0:
            raise Missing(f"not all of {', '.join(names)} can be built: {built.stderr.strip()[-2000:]}")
        for name in names:
            os.rename(pathlib.Path(partial) / _built_name(PROGRAMS[name][1]), folder / name)


def _built_name(package):
    """What `go build` calls a package's program: its last element that is no major version."""
    return [element for element in package.split("/") if not re.fullmatch(r"v\d+", element)][-1]


def _gcflags(module):
    """Without debug information, which is stripped anyway. What runs only now and then is not inlined either: that is a fifth of compiling."""
    return "-dwarf=false" if module in ("kubernetes", "load", "peer") else "-dwarf=false -l"


def _ldflags(module):
    """Stripped, and with the version that Kubernetes' programs tell each other, or that Helm 3 takes a cluster for which it does not ask."""
    required = (source(module) / "go.mod").read_text()
    stamps = {}
    if module == "kubernetes":
        version = re.search(r"^\tk8s\.io/kubernetes (v(\d+)\.(\d+)\.\d+)", required, re.MULTILINE)
        stamps = {f"k8s.io/component-base/version.{name}": version[group] for group, name in enumerate(("gitVersion", "gitMajor", "gitMinor"), 1)}
    elif module == "helm3":
        minor = re.search(r"^\tk8s\.io/client-go v0\.(\d+)", required, re.MULTILINE)[1]
        stamps = {f"helm.sh/helm/v3/pkg/{place}.k8sVersion{name}": value for place in ("chartutil", "lint/rules")
                  for name, value in (("Major", "1"), ("Minor", minor))}
    return " ".join(["-s -w", *(f"-X {name}={value}" for name, value in stamps.items())])


def source(module):
    """The folder of a module's go.mod."""
    benchmark = HERE.parent / "bench/operator" / module
    return benchmark if benchmark.exists() else HERE / module


def _cache():
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "ringmaster" / "cluster"


def _folder(module):
    content = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(source(module).glob("*")) if path.is_file()))
    return _cache() / f"{module}-{content.hexdigest()[:16]}"


def find_go():
    """A go command of the right version; one that is older than 1.26 fetches it."""
    for go in (shutil.which("go"), "/usr/local/go/bin/go"):
        if go and os.access(go, os.X_OK):
            break
    else:
        raise Missing("there is no Go to build the cluster's programs with: `apt-get install golang-go` (any version will do: it fetches "
                      f"Go {GO_VERSION} itself), or point KUBEBUILDER_ASSETS at a folder with {', '.join(CONTROL_PLANE)}")
    version = re.search(r"go1\.(\d+)", subprocess.run([go, "version"], capture_output=True, text=True).stdout)
    return go if version and int(version[1]) >= 21 else _toolchain(go)


def _toolchain(go):
    """Go before 1.21 cannot switch versions by itself; a toolchain is a module that it can download, though."""
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    name = f"golang.org/toolchain@v0.0.1-go{GO_VERSION}.linux-{machine}"
    _say(f"fetching Go {GO_VERSION}")
    fetched = subprocess.run([go, "mod", "download", name], cwd="/", env={**os.environ, "GO111MODULE": "on"}, capture_output=True, text=True)
    root = subprocess.run([go, "env", "GOMODCACHE"], capture_output=True, text=True).stdout.strip()
    toolchain = pathlib.Path(root) / name
    if fetched.returncode != 0 or not (toolchain / "bin/go").exists():
        raise Missing(f"Go {GO_VERSION} cannot be fetched: {_last_line(fetched.stderr)}")
    for program in [toolchain / "bin/go", *(toolchain / "pkg/tool").rglob("*")]:
        if program.is_file():
            program.chmod(0o755)  # modules carry no execute bits
    return str(toolchain / "bin/go")


def _environment(go):
    local = re.search(r"go(1\.\d+)", subprocess.run([go, "version"], cwd="/", env={**os.environ, "GOTOOLCHAIN": "local"},
                                                    capture_output=True, text=True).stdout)
    fits = local and GO_VERSION.startswith(local[1] + ".")
    inherited = {name: value for name, value in os.environ.items() if name != "GOROOT"}  # of another version
    return {**inherited, "GOTOOLCHAIN": "local" if fits else f"go{GO_VERSION}", "GOFLAGS": "-buildvcs=false", "GOWORK": "off",
            "CGO_ENABLED": "0"}


def _last_line(text):
    return (text.strip().splitlines() or ["no reason given"])[-1]


def _say(text):
    print(text, file=sys.stderr, flush=True)
