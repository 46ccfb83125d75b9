"""The products of matmul_bench beside the machine's peaks."""

import re

from samples import Samples, part, spread

HEADER = ("product", "weights", "GB/s", "of memory", "GOPS", "of arithmetic")


def kernel_sets(names):
    """The sets of kernels that this machine runs, the best one last, from the names of matmul_bench's cases."""
    sets = []
    for name in names:
        parts = name.split("/")
        if parts[0] == "Decode" and parts[1] not in sets:
            sets.append(parts[1])
    return sets


def choose_kernels(sets, asked):
    """The best set of those that `asked` allows: "auto" all, "avx512" all of AVX-512, else that one."""
    allowed = [name for name in sets if asked in ("auto", name) or asked == "avx512" and name.startswith("avx512-")]
    if not allowed:
        raise ValueError(f"this machine has no kernels '{asked}', only {', '.join(sets)}")
    return allowed[-1]


def case_filter(kernels):
    """A --benchmark_filter: products by those kernels. The experts of one token would stay in the processor's cache."""
    return f"^(Decode|DecodeBatch|DecodeQ4_K_M|Prefill512)/{kernels}/|^Experts/{kernels}/.*/tokens:(16|512)/"


def _what(name):
    """("decode x8", "Q8_0") of DecodeBatch/avx2/Q8_0/threads:2/batch:8/real_time."""
    op, _, *rest = name.split("/")
    tokens = next((part.partition(":")[2] for part in rest if part.startswith(("batch:", "tokens:"))), "")
    kind = "" if rest[0].startswith("threads:") else rest[0]
    if op == "DecodeQ4_K_M":
        return "decode", "Q4_K_M"
    prefill = re.fullmatch(r"Prefill(\d+)", op)
    if prefill:
        return f"prefill {prefill[1]}, one layer", kind
    if op == "Experts":
        return f"8 of 128 experts, {tokens} tokens", kind
    return ("decode" + (f" x{tokens}" if tokens else "")), kind


def rows(report, peaks, kernels):
    """Of a table with HEADER, products of one kind together: the median of each case's repetitions and their range."""
    speeds = {}
    for run in report["benchmarks"]:
        if run.get("run_type") == "iteration" and not run.get("error_occurred") and "FLOPS" in run:
            memory, arithmetic = speeds.setdefault(_what(run["name"]), (Samples(), Samples()))
            memory.rounds.append(run["bytes_per_second"] / 1e9)
            arithmetic.rounds.append(run["FLOPS"] / 1e9)
    products = list(dict.fromkeys(what for what, _ in speeds))
    for (what, kind), (memory, arithmetic) in sorted(speeds.items(), key=lambda entry: products.index(entry[0][0])):
        peak = peaks.of_type(kernels, kind)
        yield (what, kind, spread(memory), part(memory.median(), peaks.bandwidth / 1e9), spread(arithmetic),
               part(arithmetic.median(), peak and peak / 1e9))
