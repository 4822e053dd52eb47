#!/usr/bin/env python3
"""Checks who includes whom (docs/architecture.md, "Who may include whom").

    include_rules.py [ROOT]    prints one line per violation, exits 1 if there is any
    include_rules.py --self-test
"""
import pathlib
import re
import sys
import tempfile

PARTS = ["proto", "common", "operator", "launcher", "runtime", "cli", "tests"]

# What each part may include of ours, beside itself. Their unit tests may use tests/support.
ALLOWED = {
    "proto": {"common"},
    "common": set(),
    "operator": {"common", "proto"},
    "launcher": {"common", "proto"},
    "runtime": {"common", "proto"},
    "cli": {"common", "proto", "operator"},
    "tests": {"common", "proto", "operator", "launcher", "runtime", "cli"},
}

# Inside runtime/, a module may include those named here.
RUNTIME = {
    "device": set(),
    "tensor": {"device"},
    "kernels": {"device", "tensor", "graph"},
    "graph": {"device", "tensor", "kernels"},
    "nn": {"device", "tensor", "graph"},
    "optim": {"device", "tensor"},
    "data": {"device", "tensor"},
    "collectives": {"device"},
    "checkpoint": {"device", "tensor"},
    "train": {"device", "tensor", "kernels", "graph", "nn", "optim", "data", "collectives", "checkpoint"},
}

# A vendor's header and the only places that may include it.
VENDORS = {
    r"<oneapi/|<dnnl": ["runtime/kernels/onednn/"],
    r"<yaml-cpp/": ["operator/api/yaml.cc"],
    r"<prometheus/": ["common/metrics.cc"],
    r"<boost/": ["operator/kube/rest/"],
    r"<openssl/": ["common/openssl_memory", "common/sha256.cc", "common/certificate.cc", "operator/kube/rest/tls", "runtime/collectives/transport/tcp/tls_stream.cc"],
    r"<spdlog/": ["common/log.cc"],
    r"<CLI/": ["cli/", "operator/main.cc", "launcher/main.cc", "runtime/train/main.cc", "runtime/collectives/bench/main.cc", "runtime/collectives/explain/main.cc",
               "runtime/train/bench/main.cc", "runtime/train/plot/main.cc"],
    r"<grpcpp/|\.grpc\.pb\.h": ["operator/rendezvous/", "launcher/", "tests/", "proto/"],
    r"<nccl\.h|<cuda": ["runtime/collectives/nccl/"],
    r"<mpi\.h": ["runtime/collectives/transport/mpi/", "tests/bench/"],
    r"<omp\.h": ["runtime/device/", "runtime/kernels/"],
}

INCLUDE = re.compile(r'^\s*#\s*include\s+([<"][^>"]+[>"])', re.MULTILINE)
GETENV = re.compile(r"\b(secure_)?getenv\s*\(")
GETENV_ALLOWED = {"common/env.cc"}


def violations(root):
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.suffix not in (".h", ".cc") or name.startswith(("build/", ".")):
            continue
        part = name.split("/")[0]
        if part not in ALLOWED:
            continue
        text = path.read_text(encoding="utf-8")
        for include in INCLUDE.findall(text):
            yield from check(name, part, include)
        is_test = name.endswith("_test.cc") or part == "tests"
        if name.startswith("operator/reconcile/") and not is_test:
            yield from impurities(name, text)
        if GETENV.search(text) and name not in GETENV_ALLOWED and not is_test:
            yield f"{name}: calls getenv; declare the variable in common/env.cc and use common/env.h"


def check(name, part, include):
    for pattern, places in VENDORS.items():
        if re.match(pattern, include) or (pattern.endswith(r"pb\.h") and re.search(r"\.grpc\.pb\.h", include)):
            if not any(name.startswith(place) for place in places):
                yield f"{name}: {include} belongs in {' or '.join(places)}"
    if not include.startswith('"'):
        return
    target = include.strip('"').split("/")
    is_test = name.endswith("_test.cc")
    owner = "proto" if target[0] == "ringmaster" else target[0]  # protoc's own headers are ringmaster/...
    if owner in PARTS and owner != part and owner not in ALLOWED[part] and not (is_test and include.startswith('"tests/support/')):
        yield f"{name}: {part} may not include {include}"
    if part == target[0] == "runtime":
        module = name.split("/")[1]
        if target[1] != module and not is_test and target[1] not in RUNTIME.get(module, set()):
            yield f"{name}: runtime/{module} may not include {include}"


# operator/reconcile has no sockets, no clock and no environment: of ours it uses values and helpers without I/O alone, of the
# system nothing. Time comes in with what was observed.
RECONCILE_MAY_USE = re.compile(
    r'"(operator/reconcile/\w+\.h|operator/kube/(object|types|names)\.h|operator/controller/(reconciler|events)\.h'
    r'|common/(bind_request|check|clock|contract|sha256|status|text)\.h|proto/.*)"'
    r"|<(nlohmann/json(_fwd)?|fmt/\w+)\.(h|hpp)>|<(?!thread|future|fstream|filesystem|iostream|cstdio|cstdlib|ctime)\w+>")
CLOCK = re.compile(r"::now\(|\bSystemClock\b|\b(clock_)?gettime(ofday)?\(|\btime\((0|NULL|nullptr)\)")


def impurities(name, text):
    for include in INCLUDE.findall(text):
        if not RECONCILE_MAY_USE.fullmatch(include):
            yield f"{name}: reconcile is pure and may not include {include}"
    if CLOCK.search(text):
        yield f"{name}: reconcile is pure and may not read a clock; use Pass::now"


def self_test():
    """Each rule catches the file that breaks it, and a tree that keeps them all is clean."""
    cases = {
        "common/a.cc": '#include "operator/b.h"\n',
        "operator/a.cc": '#include "runtime/b.h"\n',
        "runtime/collectives/a.cc": '#include "runtime/tensor/b.h"\n',
        "runtime/graph/a.cc": "#include <oneapi/dnnl/dnnl.hpp>\n",
        "operator/reconcile/a.cc": '#include "operator/kube/client.h"\n',
        "operator/reconcile/b.h": '#include "operator/cluster/connection.h"\n',
        "operator/reconcile/c.cc": "#include <sys/socket.h>\n",
        "operator/reconcile/d.cc": "const auto t = std::chrono::system_clock::now();\n",
        "common/b.h": '#include "proto/ringmaster/training/v1alpha1/training_job.api.h"\n',
        "common/c.cc": '#include "ringmaster/rendezvous/v1/rendezvous.pb.h"\n',
        "launcher/b.cc": '#include "tests/support/http.h"\n',
        "cli/a.cc": '#include "runtime/train/session.h"\n',
        "runtime/nn/a.h": '#include "runtime/train/session.h"\n',
        "operator/kube/a.h": "#include <yaml-cpp/yaml.h>\n",
        "launcher/a.cc": "const char* x = getenv(\"X\");\n",
    }
    for name, text in cases.items():
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, name)
            file.parent.mkdir(parents=True)
            file.write_text(text)
            found = list(violations(pathlib.Path(folder)))
            assert len(found) == 1, (name, found)
            file.write_text('#include <vector>\n#include "common/status.h"\n')
            assert not list(violations(pathlib.Path(folder))), name
    print("include rules: self-test passed")


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]
    found = list(violations(root))
    print("\n".join(found) if found else "include rules: kept")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
