#!/usr/bin/env python3
"""Lays out what the images hold, beside their base: images/stage.py BIN OUT [NCCL]

OUT/operator and OUT/worker become root file systems with the programs of BIN, the shared libraries that they need but the C library, those
libraries' licences, and their packages' records under /var/lib/dpkg/status.d, where scanners look for them. No network, no package manager:
the same machine and programs give the same bytes. The base must be of this machine's Debian release; the Dockerfiles try it.
Where the folder of libnccl.so.2 is named, OUT/worker-cuda is what the worker's image for GPUs holds beside the worker's: NCCL, its licence, and the
program that measures it.
"""
import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
IMAGES = {"operator": ["ringmaster-operator"], "worker": ["ringmaster-launcher", "ringmaster-train"]}
CUDA = "worker-cuda"
# Data of the examples, so that their manifests run on a cluster as they are. A volume mounted at /workspace hides it.
WORKSPACE = ["examples/digits/digits.csv", "examples/char-lm/tinyshakespeare.txt"]
IN_EVERY_BASE = {"libc6"}


def main(bin_folder, out, nccl=None):
    for image, programs in (IMAGES | ({CUDA: ["ringmaster-bench-collectives"]} if nccl else {})).items():
        root = pathlib.Path(out) / image
        shutil.rmtree(root, ignore_errors=True)
        for program in programs:
            put(pathlib.Path(bin_folder) / program, root / "usr/local/bin" / program, 0o755)
        stage_libraries(sorted(libraries(root / "usr/local/bin" / program for program in programs)), root)
        if image == "worker":
            for file in WORKSPACE:
                put(ROOT / file, root / "workspace" / pathlib.Path(file).name, 0o644)
        if image == CUDA:
            stage_nccl(pathlib.Path(nccl), root)
        normalise(root)


def libraries(programs):
    """The paths that the loader gives to the programs' libraries."""
    found = set()
    for program in programs:
        answer = output("ldd", str(program))
        lost = re.findall(r"(\S+) => not found", answer)
        if lost:
            raise SystemExit(f"{program} needs {', '.join(lost)}, which this machine lacks")
        found.update(re.findall(r"=> (/\S+)", answer))
    return found


def stage_libraries(libraries, root):
    packages = packages_of(libraries)
    for library in libraries:
        package = packages.get(library)
        if package in IN_EVERY_BASE:
            continue
        folder = "usr/lib/" + multiarch() if package else "usr/local/lib"
        put(library, root / folder / pathlib.Path(library).name, 0o644)
    for package in sorted(set(packages.values()) - IN_EVERY_BASE):
        put(f"/usr/share/doc/{package}/copyright", root / f"usr/share/doc/{package}/copyright", 0o644)
        status = root / "var/lib/dpkg/status.d" / package
        status.parent.mkdir(parents=True, exist_ok=True)
        status.write_text(output("dpkg-query", "--status", f"{package}:{architecture()}"))
        status.chmod(0o644)


def stage_nccl(folder, root):
    """Where the loader looks without being told. NCCL is no package of Debian's; the wheel that `make nccl` fetches has its licence beside it."""
    put(folder / "libnccl.so.2", root / "usr/lib" / multiarch() / "libnccl.so.2", 0o644)
    for packages in list(folder.resolve().parents)[2:3]:  # none where the folder is another's
        for licence in packages.glob("nvidia_nccl*.dist-info/licenses/*"):
            put(licence, root / "usr/share/doc/nccl/copyright", 0o644)


def packages_of(libraries):
    """{library: its Debian package}. The two paths of a merged /usr are one file, which dpkg knows by either."""
    names = {}
    for library in libraries:
        real = os.path.realpath(library)
        names.update({name: library for name in (real, real.removeprefix("/usr"), library)})
    answer = subprocess.run(["dpkg-query", "--search", *names], capture_output=True, text=True)  # fails for each name that it does not know
    packages = {}
    for line in answer.stdout.splitlines():
        owner, _, name = line.partition(": ")
        if name in names:
            packages[names[name]] = owner.split(":")[0]
    return packages


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip("\n") + "\n"


@functools.cache
def architecture():
    return output("dpkg", "--print-architecture").strip()


@functools.cache
def multiarch():
    return output("gcc", "-print-multiarch").strip()


def put(source, target, mode):
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        shutil.copyfile(source, target)
    except FileNotFoundError as error:
        raise SystemExit(f"{error.filename} is not there; `make build` makes the programs")
    target.chmod(mode)


def normalise(root):
    """One time and the usual modes for everything, whatever this machine's umask and clock."""
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    for path in [root, *root.rglob("*")]:
        if path.is_dir():
            path.chmod(0o755)
        os.utime(path, (epoch, epoch))


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
