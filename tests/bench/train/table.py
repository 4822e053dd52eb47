"""The results as a table: samples per second, and what the issue of speed asks for."""
import os
import pathlib
import re

# Network -> samples per second of ours over the best of PyTorch's, and the longest step in seconds.
ASKED = {"mlp": (15, 60e-6), "lenet": (3, None), "lenet-bn": (3, None), "alexnet": (1.3, None), "vgg-16": (1.3, None), "resnet-50": (1.3, None),
         "densenet-121": (1.3, None), "gpt-2": (1.2, None)}
MEMORY = 0.7
READY = {"resnet-50": 2}  # seconds from the configuration to the first step
# Of the rate that the network's convolutions and matrix products alone reach; and the share of it that is enough where it is less than ASKED.
SHARE = {"resnet-50": 0.75}
ENOUGH = {"alexnet": 0.9, "vgg-16": 0.9, "resnet-50": 0.9, "densenet-121": 0.9}


def machine():
    info = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    memory = int(re.search(r"MemTotal:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text(encoding="utf-8"))[1])
    flags = info[info.index("flags"):].split("\n")[0].split()
    vector = "AVX-512" if "avx512f" in flags else "AVX2" if "avx2" in flags else "SSE2"
    return f"{os.cpu_count()} cores of {re.search(r'model name.*: (.*)', info)[1].strip()} ({vector})"


def markdown(results):
    version = next((found["version"] for case in results["cases"] for found in case["verified"].values()), "none")
    lines = [f"{results['machine']}, {results['threads']} threads; f32; PyTorch {version}; medians of the turns.", "",
             "| network, batch | turns | Ringmaster | | ready after, and of it in the first step | of its arithmetic's rate | eager | channels-last | compile | ours / best of PyTorch | peak memory, ours / PyTorch |",
             "|---|---|---|---|---|---|---|---|---|---|---|"]
    lines += [row(case) for case in results["cases"]]
    lines += ["", allocations(results["cases"])]
    lines += ["", "First loss, largest difference of a gradient (of its largest element), and of the losses of some steps, from PyTorch's eager mode: " +
              "; ".join(f"{case['network']} {found['loss']:.1e}, {found['gradient']:.1e}, {found['losses']:.1e} in {case['steps']} steps" + exactness(found)
                        for case in results["cases"] if (found := case["verified"].get("eager"))) + "."]
    return "\n".join(lines) + "\n"


def allocations(cases):
    some = [f"{case['network']} {case['most_allocations']}" for case in cases if case["most_allocations"]]
    return "Pieces of memory that a step of ours takes from the heap, at most: " + (f"**{', '.join(some)}** (asked: none)." if some else "none.")


def exactness(found):
    """Of a network whose rounding errors grow: how far ours and PyTorch's are from the result in double."""
    if "double" not in found:
        return ""
    ours, own = zip(*found["double"].values())
    return f" (from PyTorch in double: {', '.join(f'{value:.1e}' for value in ours)}, the gradient as a whole; its own f32: {', '.join(f'{value:.1e}' for value in own)})"


def row(case):
    steps, peaks = case["step_seconds"], case["peak_bytes"]
    ours = steps["ringmaster"]
    peers = {name: seconds for name, seconds in steps.items() if name != "ringmaster"}
    wanted, longest = ASKED.get(case["network"], (None, None))
    ratio = min(peers.values()) / ours if peers else None
    memory = peaks["ringmaster"] / min(peaks[name] for name in peers) if peers else None
    share = case["batch"] / ours / case["limit"] if "limit" in case else None
    least = SHARE.get(case["network"])
    ready, soon = case["ready_seconds"], READY.get(case["network"])
    cells = [f"{case['network']}, {case['batch']}", str(case["rounds"]), rate(case, ours), mark(duration(ours), longest is None or ours <= longest, longest and duration(longest)),
             mark(f"{duration(ready)}, {duration(case['first_step_extra_seconds'])}", soon is None or ready <= soon, soon and duration(soon)),
             mark(f"{share:.0%}", least is None or share >= least, least and f"{least:.0%}") if share else "–"]
    cells += [rate(case, peers.get(mode)) for mode in ("eager", "channels-last", "compile")]
    enough = ENOUGH.get(case["network"]) if share else None
    fast = wanted is None or (ratio or 0) >= wanted or (enough is not None and share >= enough)
    cells += [mark(f"{ratio:.2f}", fast, f"{wanted}, or {enough:.0%} of its arithmetic's rate" if enough else wanted) if ratio else "",
              mark(f"{memory:.2f}", memory <= MEMORY, MEMORY) if memory else ""]
    return "| " + " | ".join(cells) + " |"


def rate(case, seconds):
    if not seconds:
        return "–"
    samples = case["batch"] / seconds
    return f"{samples:,.0f} samples/s" if samples >= 100 else f"{samples:.2f} samples/s"


def duration(seconds):
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f} µs"


def mark(text, met, wanted):
    return text if met else f"**{text}** (asked: {wanted})"
