"""Programs of Debian packages, taken apart into a cache instead of installed: no root, and no service that starts.

`debian.py PACKAGE` fetches one, unless that was done before, and prints the folder of its files."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "ringmaster"


class Missing(Exception):
    """A package or a program of it that is not there; the message says how to get it."""


def folder(package):
    """Where the package's files lie, as below /."""
    return CACHE / package


def take_apart(package):
    """Fetches the package, unless that was done before."""
    if folder(package).exists():
        return
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as place:
        download = ["apt-get", "download", "-q", package]
        if subprocess.run(download, cwd=place, stdout=sys.stderr).returncode != 0:
            raise Missing(f"Debian's package {package} cannot be fetched: run `apt-get update` as root, then this again")
        archive, = pathlib.Path(place).glob(f"{package}_*.deb")
        subprocess.run(["dpkg-deb", "--extract", archive, f"{place}/root"], check=True)
        shutil.rmtree(folder(package), ignore_errors=True)
        os.rename(f"{place}/root", folder(package))


if __name__ == "__main__":
    try:
        take_apart(sys.argv[1])
    except Missing as error:
        sys.exit(str(error))
    print(folder(sys.argv[1]))
