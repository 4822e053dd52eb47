"""Namespaces of its own for a cluster with real nodes, so that nothing of this machine is touched and nothing is left.

`enter` moves this process into new network, mount, IPC and host name namespaces, and starts the first process of a new process namespace; this
process' later children live in there. However this process ends, that first one ends with it, and then the kernel kills all others in there,
containers and their shims too, and drops the mounts, the interfaces and the rules. Only cgroups remain, empty: `remove_cgroups`.
"""
import ctypes
import errno
import os
import pathlib
import signal
import subprocess
import sys
import time

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWPID, CLONE_NEWNET = 0x20000, 0x4000000, 0x8000000, 0x20000000, 0x40000000
CGROUPS = pathlib.Path("/sys/fs/cgroup")
EMPTY_SECONDS = 30  # for a cgroup's last processes to be gone
# What a kubelet sets for the whole machine: in here it writes to a file instead.
SYSCTLS = {"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1",
           "kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000"}


class Refused(Exception):
    """This machine does not allow it; the message says what, and what to do."""


def enter(folder, addresses, hosts):
    """Returns the pid, as this machine counts, of the first process in there: `nsenter` takes it. It has one interface with `addresses`;
    `hosts` is its /etc/hosts. /run, /var/lib and /var/log can be written there, and are forgotten. `folder` must not lie in these."""
    if os.geteuid() != 0:
        raise Refused("a real node needs root: mounts, cgroups and a network of its own")
    for hidden in ("/run", "/var/lib", "/var/log"):
        if pathlib.Path(folder).resolve().is_relative_to(hidden):
            raise Refused(f"{folder} lies in {hidden}, which a node has for itself; choose another folder")
    flags = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNET
    if LIBC.unshare(flags) != 0:
        raise Refused(f"this machine refuses new namespaces ({os.strerror(ctypes.get_errno())}); in a container, run it with --privileged")
    first = subprocess.Popen([sys.executable, "-B", __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    LIFELINES.append(first)  # its standard input closes when this process ends
    if first.stdout.readline() != "ready\n":
        raise Refused(f"a node's namespaces cannot be set up: {first.stderr.read().strip()}")
    _network(addresses)
    _replace("/etc/hosts", hosts)
    _replace("/etc/resolv.conf", "")
    return first


LIFELINES = []


def _first_process():
    """Prepares the mounts, then reaps the orphans of its namespace until its standard input closes."""
    _run("mount", "--make-rprivate", "/")
    _run("mount", "-t", "proc", "proc", "/proc")
    for folder in ("/run", "/var/log", "/run/own"):  # the last, a file system of its own: a kubelet finds /run by its number
        pathlib.Path(folder).mkdir(exist_ok=True)
        _run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", folder)
    for folder in ("upper", "work"):
        pathlib.Path("/run/own", folder).mkdir(parents=True)
    _run("mount", "-t", "overlay", "-o", "lowerdir=/var/lib,upperdir=/run/own/upper,workdir=/run/own/work", "overlay", "/var/lib")
    for name, value in SYSCTLS.items():
        _replace(f"/proc/sys/{name}", value + "\n")
    signal.signal(signal.SIGCHLD, lambda number, frame: _reap())
    print("ready", flush=True)
    os.read(0, 1)


def _reap():
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return
        except ChildProcessError:
            return


def _replace(path, content):
    """Puts a file of that content in the place of another, in this mount namespace alone."""
    own = pathlib.Path("/run/own", path.strip("/").replace("/", "-"))
    own.write_text(content)
    if pathlib.Path(path).exists():
        _run("mount", "--bind", str(own), path)


def _network(addresses):
    _run("ip", "link", "set", "lo", "up")
    _run("ip", "link", "add", "machine", "type", "bridge")
    for address in addresses:
        _run("ip", "address", "add", f"{address}/24", "dev", "machine")
    _run("ip", "link", "set", "machine", "up")
    _run("ip", "route", "add", "default", "dev", "machine")  # service addresses need a route before they are rewritten
    for name in ("ipv4/ip_forward", "bridge/bridge-nf-call-iptables"):
        path = pathlib.Path("/proc/sys/net", name)
        if not path.exists():
            raise Refused(f"the kernel has no {path}; `modprobe br_netfilter`")
        path.write_text("1")


def _run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    if done.returncode != 0:
        raise Refused(f"{' '.join(command)}: {done.stderr.strip()}")


def _hierarchies():
    """The folders under which cgroups are made: one with version 2, one per controller with version 1."""
    if (CGROUPS / "cgroup.controllers").exists():
        return [CGROUPS]
    return [path for path in CGROUPS.iterdir() if (path / "cgroup.procs").exists() and not path.is_symlink()]


def make_cgroup(name):
    """Makes a cgroup of that name for every controller."""
    try:
        for group in (hierarchy / name for hierarchy in _hierarchies()):
            group.mkdir(exist_ok=True)
            for file in ("cpuset.cpus", "cpuset.mems"):  # with version 1 empty at first, and then no process may enter
                if (group / "tasks").exists() and (group / file).exists():
                    (group / file).write_text((group.parent / file).read_text())
        if (CGROUPS / "cgroup.controllers").exists():
            wanted = {"cpu", "cpuset", "memory", "pids", "io"} & set((CGROUPS / "cgroup.controllers").read_text().split())
            for parent in reversed(pathlib.Path(name).parents):  # from the root down
                (CGROUPS / parent / "cgroup.subtree_control").write_text(" ".join(f"+{controller}" for controller in sorted(wanted)))
    except OSError as error:
        raise Refused(f"a cgroup cannot be made: {error}")


def remove_cgroups(name):
    """Removes the cgroups of that name, in which no process is any more, and those inside them."""
    end = time.monotonic() + EMPTY_SECONDS
    for parent in _hierarchies():
        for path, _, _ in os.walk(parent / name, topdown=False):
            _remove_cgroup(path, end)


def _remove_cgroup(path, end):
    """What has been killed leaves its cgroup a moment after it has left the list of processes."""
    while True:
        try:
            return os.rmdir(path)
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > end:
                raise
        time.sleep(0.02)  # between two looks; nothing depends on its length


def check():
    """Raises Refused where `enter` cannot work: does it all, in a process of its own."""
    child = os.fork()
    if child == 0:
        try:
            name = f"ringmaster-check-{os.getpid()}"
            make_cgroup(name)
            remove_cgroups(name)
            enter("/tmp", ["10.200.0.1"], "")
            LIFELINES[0].kill()
            LIFELINES[0].wait()
        except (Refused, OSError) as error:
            print(error, file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1] != 0:
        raise SystemExit(1)


if __name__ == "__main__":
    try:
        check() if sys.argv[1:] == ["--check"] else _first_process()
    except (Refused, OSError) as error:
        sys.exit(str(error))
