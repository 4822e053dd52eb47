"""An environment with PyTorch, made in the user's cache where there is none."""
import hashlib
import os
import pathlib
import subprocess
import sys
import venv

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "ringmaster"
REQUIREMENTS = pathlib.Path(__file__).resolve().parent / "requirements.txt"


def python():
    """Its interpreter."""
    digest = hashlib.sha256(REQUIREMENTS.read_bytes() + sys.version.encode()).hexdigest()[:12]
    folder = CACHE / f"torch-{digest}"
    interpreter, complete = folder / "bin/python", folder / "complete"
    if not complete.exists():
        print(f"installing PyTorch into {folder}, once: some gigabytes", file=sys.stderr)
        venv.create(folder, clear=True, with_pip=True)
        subprocess.run([interpreter, "-m", "pip", "install", "--quiet", "-r", REQUIREMENTS], check=True)
        subprocess.run([interpreter, "-c", "import torch"], check=True)
        complete.touch()
    return interpreter


def variables():
    """This process's environment without what some machines set for an OpenBLAS that is too old for them: it would slow numpy, and nothing else here
    needs it."""
    return {name: value for name, value in os.environ.items() if name not in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")}
