"""The results as a table: times, who is the better peer, and what the issue of speed asks for."""
import math
import os
import pathlib
import re
import statistics

import contenders

# What is asked of ours, as the better peer's time over ours.
FROM_1K, BELOW_1K, MEAN, RESNET50 = 1.0, 1 / 1.5, 1.5, 2.0
TCP_FROM_1M, TCP_AT_1K = 1.2, 1 / 0.6
ORDERED, UNALIGNED = 1.1, 1.6  # at most, of the ordered sum's time over the fastest allreduce's, where shards are aligned and where they are not
HOSTS = 0.95  # of the goodput of plain TCP streams


def machine():
    info = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    memory = int(re.search(r"MemTotal:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text(encoding="utf-8"))[1])
    return f"{os.cpu_count()} cores of {re.search(r'model name.*: (.*)', info)[1].strip()}, {memory // 1048576 + 1} GiB of memory"


def best(results, peer, size):
    """(microseconds, algorithm) of a peer at a size: the algorithm with the smallest median, or None."""
    found = [(statistics.median(one["values"][size]), one["algorithm"]) for one in results["samples"] if one["peer"] == peer and size in one["values"]]
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


def is_aligned(ranks, shards):
    """Whether the shards of each rank are a whole part of the tree by which they are added; 4 a rank always are."""
    each, rest = divmod(shards, ranks)
    return rest == 0 and each & (each - 1) == 0


def rows(results):
    for size in results["sizes"]:
        auto, tcp, sockets = (best(results, name, size) for name in ("ringmaster-auto", "ringmaster-tcp", "sockets"))
        gloo, mpi = best(results, "gloo", size), best(results, "mpi", size)
        better = min(filter(None, (gloo, mpi)), default=None)
        yield {"size": size, "auto": auto, "tcp": tcp, "gloo": gloo, "mpi": mpi, "sockets": sockets,
               "ratio": better[0] / auto[0] if better else None, "tcp_ratio": gloo[0] / tcp[0] if gloo else None,
               "ordered_shares": ordered_shares(results, size)}


def ordered_shares(results, size):
    """By transport, the ordered sum's time as a part of that of the allreduce that the same ranks make in turns with it."""
    return {transport: best(results, name, size)[0] for transport, name in contenders.SHARE.items()}


def taken_on(results):
    left_out = f"; left out for another pace: {results['left_out']}" if results["left_out"] else ""
    left_out += f"; values for a lower clock: {results['slow']}" if results["slow"] else ""
    return f"{results['machine']}; medians of turns: {results['turns']}{left_out}"


def of_ordered_sum(results):
    """The ordered sum of a number of shards beside the fastest allreduce, neither over its input."""
    ranks, shards = results["ranks"], results["shards"]
    aligned = is_aligned(ranks, shards)
    lines = [f"{shards} shards among {ranks} ranks, {'' if aligned else 'not '}aligned, on {taken_on(results)}.", "",
             f"| size | {' | '.join(contenders.SHARE.values())} |", f"|---|{'---|' * len(contenders.SHARE)}"]
    for size in results["sizes"]:
        cells = [share(value, ORDERED if aligned else UNALIGNED) for value in ordered_shares(results, size).values()]
        lines.append(f"| {name_of(size)} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def of_hosts(results):
    """Allreduce among hosts, for each rate of their links and kind of ranks, as busbw and as a part of the goodput of plain streams."""
    sizes = list(results[0]["busbw"]["one rank a host"])
    lines = [f"Four hosts as network namespaces of {machine()}; allreduce of f32, busbw in GB/s and as a part of the goodput of plain TCP streams.", "",
             f"| links | ranks | plain streams, GB/s | {' | '.join(map(name_of, sizes))} |", "|---|---|---|" + "---|" * len(sizes)]
    for result in results:
        for kind, by_size in result["busbw"].items():
            cells = [f"{value:.3f} ({part(value / result['goodput'], falls_short(kind, size, value, result))})" for size, value in by_size.items()]
            lines.append(f"| {result['rate']} | {kind} | {result['goodput']:.3f} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def falls_short(kind, size, busbw, result):
    if kind == "two ranks a host, two-level":
        return busbw <= result["busbw"]["two ranks a host, flat"][size]
    return kind == "one rank a host" and busbw < HOSTS * result["goodput"]


def part(value, is_short):
    text = f"{100 * value:.0f} %"
    return f"**{text}**" if is_short else text


def markdown(results):
    ranks, limits = results["ranks"], results["limits"]
    lines = [f"{ranks} ranks on {taken_on(results)}.", "",
             f"Limits, measured in turns with these: memcpy {limits['memcpy_gbs']:.2f} GB/s a rank, a ring of TCP streams {limits['socket_gbs']:.2f} GB/s a rank; "
             f"half a round trip {limits['socket_us']:.1f} µs over a socket, {limits['line_us']:.2f} µs over a cache line.", "",
             f"| size | Gloo, µs | Open MPI, µs | Ringmaster, µs | busbw, GB/s | better peer / ours | {contenders.SHARE['auto']} | over TCP, µs | busbw, GB/s | Gloo / ours over TCP "
             f"| {contenders.SHARE['tcp']} | bare sockets, µs |",
             "|---|---|---|---|---|---|---|---|---|---|---|---|"]
    found = list(rows(results))
    for row in found:
        links = carried(row["size"], ranks)
        lines.append(f"| {name_of(row['size'])} | {cell(row['gloo'])} | {cell(row['mpi'])} | {micros(row['auto'][0])} | {links / row['auto'][0]:.2f} | "
                     f"{ratio(row['ratio'], asked(row['size']))} | {share(row['ordered_shares']['auto'], ORDERED)} | {micros(row['tcp'][0])} | {links / row['tcp'][0]:.2f} | "
                     f"{ratio(row['tcp_ratio'], asked_of_tcp(row['size']))} | {share(row['ordered_shares']['tcp'], ORDERED)} | {micros(row['sockets'][0]) if row['sockets'] else ''} |")
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


def share(value, wanted):
    return f"{value:.2f}" if value <= wanted else f"**{value:.2f}** (asked: {wanted:.2g})"


def asked(size):
    if 100e6 < size < 110e6:
        return RESNET50
    return FROM_1K if size >= 1024 else BELOW_1K


def asked_of_tcp(size):
    return TCP_FROM_1M if size >= 1 << 20 else TCP_AT_1K if size == 1024 else None
