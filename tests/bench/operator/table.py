"""The results as a table: what was measured, what it is compared with, what is asked for."""
import os
import pathlib
import re

from world import median, quantile

OWN = "ringmaster_operator_reconcile_own_seconds"


def machine():
    info = pathlib.Path("/proc/cpuinfo").read_text()
    memory = int(re.search(r"MemTotal:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text())[1])
    return f"{os.cpu_count()} cores of {re.search(r'model name.*: (.*)', info)[1].strip()}, {memory // 1048576 + 1} GiB of memory"


def passes(noted):
    """p99 of a pass without and with calls, in ms: the median of the races."""
    found = {}
    for kind in ("none", "some"):
        values = [quantile(one["metrics"], OWN, 0.99, f'calls="{kind}"') for one in noted]
        found[kind] = {"p99Ms": 1000 * median([bound for bound, _ in values]), "passes": sum(count for _, count in values)}
    return found


class Table:
    def __init__(self):
        self.lines = ["| | measured | compared with | ratio | asked for | |", "|---|---|---|---|---|---|"]

    def add(self, what, measured, other="", ratio="", asked="", met=None):
        mark = "" if met is None else "yes" if met else "**no**"
        self.lines.append(f"| {what} | {measured} | {other} | {ratio} | {asked} | {mark} |")

    def compare(self, what, ours, other, name, unit, at_least=None, at_most=None):
        ratio = ours / other
        met = ratio >= at_least if at_least else ratio <= at_most if at_most else None
        asked = f"≥ {at_least:g}" if at_least else f"≤ {at_most:g}" if at_most else ""
        self.add(what, f"{ours:.1f} {unit}", f"{other:.1f} {unit} ({name})", f"{ratio:.2f}", asked, met)

    def bound(self, what, value, unit, below, shown="{:.1f}"):
        self.add(what, f"{shown.format(value)} {unit}", "", "", f"< {below} {unit}", value < below)


def of(races, name, key):
    return median([race[key] for race in races if race["contender"] == name])


def cpu_of(races, name, program):
    return median([race["cpu"].get(program, 0) for race in races if race["contender"] == name])


def markdown(results):
    table = Table()
    if "rates" in results:
        add_rates(table, results["rates"])
    if "memory" in results:
        add_memory(table, results["memory"])
    if "streams" in results:
        add_streams(table, results["streams"])
    return f"{results['machine']}\n\n" + "\n".join(table.lines) + "\n"


def add_rates(table, rates):
    for races in filter(None, (rates["large"], rates["races"])):
        jobs = next(race["jobs"] for race in races if race["contender"] == "Ringmaster")
        for key, what in (("created", "pods created"), ("running", "pods all Running")):
            table.compare(f"{jobs:,} jobs of 8 workers: {what}", of(races, "Ringmaster", key), of(races, "plain client", key), "plain client", "/s",
                          at_least=0.9)
        for program, what in (("kube-controller-manager", "controller-manager"), ("kube-apiserver", "API server")):
            table.compare(f"{jobs:,} jobs: CPU of the {what}", cpu_of(races, "Ringmaster", program), cpu_of(races, "plain client", program), "bare pods",
                          "ms a pod", at_most=1.1 if program == "kube-controller-manager" else None)
        table.add(f"{jobs:,} jobs: CPU of the operator", f"{cpu_of(races, 'Ringmaster', 'contender'):.1f} ms a pod")
    races = rates["races"]
    for name in ("training-operator", "training-operator, raised limits"):
        for key, what in (("created", "pods created"), ("running", "pods all Running")):
            table.compare(what, of(races, "Ringmaster", key), of(races, name, key), name, "/s", at_least=3)
    for kind, what, below in (("none", "without API calls", 1), ("some", "with API calls, its own part", 10)):
        measured = rates["passes"][kind]
        table.bound(f"reconcile pass {what}: p99 of {measured['passes']:,}", measured["p99Ms"], "ms", below, "{:.2f}")
    table.bound("idle, with all pods running: CPU", 100 * rates["idle"], "% of a core", 2)


def add_memory(table, memory):
    table.bound(f"{memory['jobs']:,} finished jobs of one pod: memory", memory["mb"], "MB", 100)
    table.add("the same at its peak, and without any job", f"{memory['peakMb']:.1f} MB", f"{memory['emptyMb']:.1f} MB")
    table.bound("idle, with these: CPU", 100 * memory["idle"], "% of a core", 2)


def add_streams(table, streams):
    count = f"{streams['streams']:,} workers' streams"
    table.add(f"{count}: memory", f"{streams['kbEach']:.0f} kB each", f"{streams['mb']:.0f} MB in all")
    table.add(f"{count}: CPU", f"{100 * streams['cpu']:.1f} % of a core", f"{streams['heartbeats']:,} heartbeats")
    table.add(f"{count}: heartbeats late by", f"{streams['lateP99Ms']:.0f} ms (p99)", f"{streams['lateMaxMs']:.0f} ms at most")
    table.add(f"{count}: all joined and in their rounds after", f"{streams['joinSeconds']:.1f} s")
