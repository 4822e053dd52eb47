"""The programs of a real node that come from Debian. Not installed: that would start a containerd on this machine."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import debian  # noqa: E402

# Program: (package, its folder there).
PROGRAMS = {"containerd": ("containerd", "usr/bin"), "ctr": ("containerd", "usr/bin"), "runc": ("runc", "usr/sbin"),
            "bridge": ("containernetworking-plugins", "usr/lib/cni"), "docker-registry": ("docker-registry", "usr/bin")}


def find(name):
    """The path of a program; raises debian.Missing."""
    package, folder = PROGRAMS[name]
    path = debian.folder(package) / folder / name
    if not os.access(path, os.X_OK):
        raise debian.Missing(f"{name} is not there; `make e2e` fetches it")
    return str(path)


def fetch():
    for package in dict.fromkeys(package for package, _ in PROGRAMS.values()):
        debian.take_apart(package)


if __name__ == "__main__":
    try:
        fetch()
    except debian.Missing as error:
        sys.exit(str(error))
