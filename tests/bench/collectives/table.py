"""The results as a table: times, who is the better peer, and what the issue of speed asks for."""
import math
import os
import pathlib
import re
import statistics

# What is asked of ours, as the better peer's time over ours.
FROM_1K, BELOW_1K, MEAN, RESNET50 = 1.0, 1 / 1.5, 1.5, 2.0
TCP_FROM_1M, TCP_AT_1K = 1.2, 1 / 0.6


def machine():
    info = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    memory = int(re.search(r"MemTotal:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text(encoding="utf-8"))[1])
    return f"{os.cpu_count()} cores of {re.search(r'model name.*: (.*)', info)[1].strip()}, {memory // 1048576 + 1} GiB of memory"


def best(results, peer, size):
    """(microseconds, algorithm) of a peer at a size: the algorithm with the smallest median, or None."""
    found = [(statistics.median(one["us"][size]), one["algorithm"]) for one in results["samples"] if one["peer"] == peer and size in one["us"]]
    return min(found, default=None)


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def name_of(size):
    if size % (1 << 20) == 0:
        return f"{size >> 20} MB"
    if size % 1024 == 0:
        return f"{size >> 10} KB"
    return f"{size / 1e6:.1f}·10⁶ B" if size > 1e6 else f"{size} B"


def micros(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def carried(size, ranks):
    """What busbw counts of an allreduce, in units that give GB/s when divided by microseconds."""
    return size * 2 * (ranks - 1) / ranks / 1000


def cell(found):
    return f"{micros(found[0])} ({found[1]})" if found else ""


def rows(results):
    for size in results["sizes"]:
        auto, tcp = best(results, "ringmaster-auto", size), best(results, "ringmaster-tcp", size)
        gloo, mpi = best(results, "gloo", size), best(results, "mpi", size)
        better = min(filter(None, (gloo, mpi)), default=None)
        yield {"size": size, "auto": auto, "tcp": tcp, "gloo": gloo, "mpi": mpi,
               "ratio": better[0] / auto[0] if better else None, "tcp_ratio": gloo[0] / tcp[0] if gloo else None}


def markdown(results):
    ranks, limits = results["ranks"], results["limits"]
    lines = [f"{ranks} ranks on {results['machine']}; medians of {results['rounds']} rounds.", "",
             f"Limits, measured between the rounds: memcpy {limits['memcpy_gbs']:.2f} GB/s a rank, a ring of TCP streams {limits['socket_gbs']:.2f} GB/s a rank; "
             f"half a round trip {limits['socket_us']:.1f} µs over a socket, {limits['line_us']:.2f} µs over a cache line.", "",
             "| size | Gloo, µs | Open MPI, µs | Ringmaster, µs | busbw, GB/s | better peer / ours | over TCP, µs | busbw, GB/s | Gloo / ours over TCP |",
             "|---|---|---|---|---|---|---|---|---|"]
    found = list(rows(results))
    for row in found:
        links = carried(row["size"], ranks)
        lines.append(f"| {name_of(row['size'])} | {cell(row['gloo'])} | {cell(row['mpi'])} | {micros(row['auto'][0])} | {links / row['auto'][0]:.2f} | "
                     f"{ratio(row['ratio'], asked(row['size']))} | {micros(row['tcp'][0])} | {links / row['tcp'][0]:.2f} | "
                     f"{ratio(row['tcp_ratio'], asked_of_tcp(row['size']))} |")
    ratios = {row["size"]: row["ratio"] for row in found if row["ratio"]}
    if ratios:
        worst = min(ratios, key=ratios.get)
        lines += ["", f"Geometric mean of better peer / ours: {ratio(geometric_mean(ratios.values()), MEAN)}; worst size: {name_of(worst)}, {ratios[worst]:.2f}."]
    return "\n".join(lines) + "\n"


def ratio(value, wanted):
    if value is None:
        return ""
    text = f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"
    return text if wanted is None or value >= wanted else f"**{text}** (asked: {wanted:.2g})"


def asked(size):
    if 100e6 < size < 110e6:
        return RESNET50
    return FROM_1K if size >= 1024 else BELOW_1K


def asked_of_tcp(size):
    return TCP_FROM_1M if size >= 1 << 20 else TCP_AT_1K if size == 1024 else None
