"""What the tests in Python share: where things lie, waiting with a deadline, processes, and the names of tests for CTest."""
import os
import pathlib
import random
import socket
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("RINGMASTER_BIN_DIR", ROOT / "build/release/bin"))
DEADLINE = 300  # seconds that any one wait may take; a sanitizer's build on two cores is slow
LEFT_OUT = 77  # CTest's code for a test that says why it cannot run here


def wait_until(condition, what, deadline=DEADLINE, between=0.002):
    """The first true value of `condition()`; fails after the deadline."""
    end = time.monotonic() + deadline
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(between)  # between two looks; nothing depends on its length
    raise AssertionError(f"waited {deadline} s in vain for {what() if callable(what) else what}")


def output_so_far(file):
    """What a process has written into `file` so far. Read in place: a seek would move where the process itself writes."""
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode()


_given_ports = set()


def free_port(address="127.0.0.1"):
    """A port that nobody listens on, and that the kernel gives to nobody who asks for any port: such a one may be taken before it is used."""
    first = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="utf-8").split()[0])
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    ports = range(10_000, first if first > 11_000 else 61_000)  # some machines give away nearly all of them
    for port in random.sample(ports, 1000):
        try:
            if port not in _given_ports:
                socket.create_server((address, port), family=family).close()
                _given_ports.add(port)
                return port
        except OSError:
            continue
    raise AssertionError(f"none of 1,000 ports of {ports} is free")


def processes():
    """(pid, parent, command line) of every process of this machine that can be read."""
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                command = (entry / "cmdline").read_bytes().split(b"\0")
                yield int(entry.name), int(fields[1]), [word.decode(errors="replace") for word in command if word]
            except (OSError, IndexError):
                continue


def main():
    """`FILE` runs all; `FILE --list` names the tests, a line each, for CTest."""
    if sys.argv[1:] == ["--list"]:
        suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
        for case in suite:
            for test in case:
                print(test.id().removeprefix("__main__."))
        return
    result = unittest.main(verbosity=2, exit=False).result
    if result.wasSuccessful() and result.skipped and os.environ.get("CI") != "true":  # CI leaves no test out
        sys.exit(LEFT_OUT)
    sys.exit(not result.wasSuccessful() or bool(result.skipped))
