"""Keeps a test cluster's programs, and ends with them.

One process in the background holds the lock of the cluster's folder while the cluster runs. Its children die with it, however it dies; it
ends when told (SIGTERM), when one of them ends, and when the process that the cluster was started for is gone. So nothing is left running.
"""
import ctypes
import dataclasses
import fcntl
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import time

import control_plane
import namespaces
import node

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)
STOP_SECONDS = 30


class Failed(Exception):
    """The cluster did not start or stop; the message says why."""


def start(folder, options, owner=None):
    """Starts a cluster in the background and returns when it is usable. `owner`: a pid that it shall not outlive."""
    folder = pathlib.Path(folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    reader, writer = os.pipe()
    with os.fdopen(reader) as said, open(folder / "supervisor.log", "w") as log:
        subprocess.Popen([sys.executable, "-B", __file__, str(folder), json.dumps(dataclasses.asdict(options)), str(owner or 0), str(writer)],
                         stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=[writer], start_new_session=True)
        os.close(writer)
        answer = said.read()  # until the supervisor closes it: its deadlines bound the wait
    if answer != "ready":
        raise Failed(answer or f"the supervisor ended:\n{(folder / 'supervisor.log').read_text()[-2000:]}")
    return folder / "kubeconfig"


def stop(folder):
    """Ends the cluster of the folder, if there is one, and removes what only a running one needs. The logs stay."""
    folder = pathlib.Path(folder).resolve()
    if not folder.exists():
        return
    end = time.monotonic() + STOP_SECONDS
    with open(folder / "lock", "a+") as lock:
        while not _take(lock):
            if time.monotonic() > end:
                raise Failed(f"the cluster in {folder} does not stop; its supervisor is process {_holder(folder)}")
            if _holder(folder):
                os.kill(_holder(folder), signal.SIGTERM)
            time.sleep(0.05)  # between two looks; nothing depends on its length
        _clean(folder)
        namespaces.remove_cgroups(control_plane.cgroup(folder))


def _take(lock):
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False


def _holder(folder):
    """The pid of the folder's supervisor, 0 where it has not written it yet."""
    try:
        return int((folder / "pid").read_text())
    except (OSError, ValueError):
        return 0


def _clean(folder):
    shutil.rmtree(folder / "etcd", ignore_errors=True)
    for pattern in ("pid", "first-process", "kubeconfig", "*.kubeconfig", "*.crt", "*.key", "*.pub"):
        for path in folder.glob(pattern):
            path.unlink()


class Supervisor:
    def __init__(self, folder, owner):
        self._folder = folder
        self._children = {}  # pidfd: (name, process)
        self._wake, notify = os.pipe()
        os.set_blocking(notify, False)
        signal.set_wakeup_fd(notify)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        self._owner = os.pidfd_open(owner) if owner else None
        self._starting = True

    def enter_namespaces(self, count):
        """Puts what runs from now on where `count` real nodes can be."""
        addresses = [node.CONTROL_PLANE_ADDRESS, *node.addresses(count).values()]
        first = namespaces.enter(self._folder, addresses, node.hosts(count))
        self._children[os.pidfd_open(first.pid)] = ("first-process", first)
        (self._folder / "first-process").write_text(str(first.pid))

    def _on_signal(self, number, frame):
        if self._starting:  # the start does not poll: leave it from wherever it is
            raise Failed(f"stopped by signal {number} while it started")

    def run(self, plane, ready):
        """Returns why it ended."""
        try:
            plane.start(self._spawn, self._check)
            self._starting = False
            ready()
            return self._wait()
        except (TimeoutError, Failed, RuntimeError, OSError, namespaces.Refused, subprocess.TimeoutExpired) as error:
            raise Failed(f"{error}{self._first_dead()}") from error
        finally:
            self._stop()

    def _spawn(self, name, command):
        with open(self._folder / f"{name}.log", "w") as log:
            process = subprocess.Popen(command, cwd=self._folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                       preexec_fn=lambda parent=os.getpid(): die_with(parent))
        self._children[os.pidfd_open(process.pid)] = (name, process)

    def _check(self):
        if self._first_dead():
            raise Failed("one of its programs ended while it started")

    def _wait(self):
        poll = select.poll()
        for handle in [self._wake, *self._children, *([self._owner] if self._owner else [])]:
            poll.register(handle, select.POLLIN)
        handle = poll.poll()[0][0]
        if handle == self._owner:
            return "the process that it was started for is gone"
        return "told to stop" if handle == self._wake else self._first_dead().strip()

    def _first_dead(self):
        for name, process in self._children.values():
            if process.poll() is not None:
                log = (self._folder / f"{name}.log").read_text(errors="replace").splitlines()
                return f"\n{name} ended with {process.returncode}; its last lines:\n" + "\n".join(log[-10:])
        return ""

    def _stop(self):
        for _, process in self._children.values():
            process.kill()  # test data: nothing to save
        for _, process in reversed(self._children.values()):  # a namespace's first process ends after all others are waited for
            process.wait()
        namespaces.remove_cgroups(control_plane.cgroup(self._folder))


def die_with(parent):
    """In a child before it becomes its program: it is killed when the thread that started it ends."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() not in (parent, 0):  # 0: the parent is outside of this process' namespace
        os._exit(1)


def _main(folder, options, owner, writer):
    folder, owner = pathlib.Path(folder), int(owner)
    folder.chmod(0o700)  # keys lie here
    lock = open(folder / "lock", "a+")
    with os.fdopen(int(writer), "w") as said:
        if not _take(lock):
            said.write(f"a cluster runs in {folder} already; `tests/cluster/down {folder}` stops it")
            return
        _clean(folder)
        (folder / "pid").write_text(str(os.getpid()))
        try:
            supervisor, options = Supervisor(folder, owner), control_plane.Options(**json.loads(options))
            if options.kubelets:
                supervisor.enter_namespaces(options.kubelets)
                options.address = node.CONTROL_PLANE_ADDRESS
            plane = control_plane.ControlPlane(folder, options)
            print(supervisor.run(plane, lambda: (said.write("ready"), said.close())), flush=True)
        except (Failed, namespaces.Refused, control_plane.binaries.Missing, node.packages.debian.Missing, OSError) as error:
            print(error, flush=True)
            if not said.closed:
                said.write(str(error))
        _clean(folder)


if __name__ == "__main__":
    _main(*sys.argv[1:])
