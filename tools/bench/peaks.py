"""The machine's peaks, from peaks_bench, and which one bounds products of a weight type.

A product of signed bytes and unsigned ones is exact by vpmaddubsw if its sums fit 16 bits. Of 4-bit weights (at most 15, by
activations of at most 127) eight sums fit before vpmaddwd widens them, of 8-bit weights only vpmaddubsw's own.
"""

from dataclasses import dataclass

FLOATS = ("F32", "F16", "BF16")
# vpmaddubsw summed in 16 bits per vpmaddwd, by type. Sums end with the values that share a scale: 16 of Q2_K, Q3_K, Q6_K and NVFP4.
SUMS = {"Q8_0": 1, "IQ4_NL": 1, "IQ4_XS": 1, "Q6_K": 2, "Q5_0": 4, "Q5_1": 4, "Q5_K": 4, "Q2_K": 4, "Q3_K": 4,
        "Q4_0": 8, "Q4_1": 8, "Q4_K": 8, "MXFP4": 8, "NVFP4": 4, "IQ1_S": 8, "IQ1_M": 4, "IQ2_XXS": 2, "IQ2_XS": 2, "IQ2_S": 2,
        "IQ3_XXS": 2, "IQ3_S": 8, "Q1_0": 8, "Q2_0": 8, "TQ1_0": 8, "TQ2_0": 8}


@dataclass
class Peaks:
    bandwidth: float  # bytes per second
    ops: dict  # operations per second by (instruction set, mix), as in ("avx2", "int8:4")

    def best(self, other):
        """Of two measurements: a machine that is slower for a while is not a slower one."""
        return Peaks(max(self.bandwidth, other.bandwidth), {mix: max(rate, other.ops.get(mix, 0.0)) for mix, rate in self.ops.items()})

    def with_readings(self, bandwidths):
        """The same with memory as fast as the fastest of these, if that is faster."""
        return Peaks(max([self.bandwidth, *bandwidths]), self.ops)

    def of_type(self, kernels, weight_type):
        """Operations per second of the best mix that is exact, for the kernels of that name; None if it was not measured."""
        return max((self.ops[mix] for mix in _mixes(kernels, weight_type) if mix in self.ops), default=None)


def _mixes(kernels, weight_type):
    tiles = "amx" in kernels
    vectors = kernels.partition("-")[0]
    if weight_type in FLOATS:
        dots = [("avx512-bf16", "bf16")] if vectors == "avx512" else []
        dots += [("amx", "bf16")] if tiles else []
        return [(vectors, "f32"), *(dots if weight_type == "BF16" else [])]
    if tiles:
        return [("amx", "int8")]
    if kernels in ("avx2-vnni", "avx512-vnni", "avx512-bf16"):
        return [(f"{vectors}-vnni", "int8")]
    return [(vectors, f"int8:{SUMS[weight_type]}")] if weight_type in SUMS else []


def parse(report):
    """Peaks of the JSON of peaks_bench: the best repetition of each."""
    bandwidth, ops = 0.0, {}
    for run in report["benchmarks"]:
        if run.get("run_type") != "iteration" or run.get("error_occurred"):
            continue
        name = run["name"].split("/")
        if name[0] == "ReadMemory":
            bandwidth = max(bandwidth, run["bytes_per_second"])
        elif name[0] == "Peak":
            mix = (name[1], name[2])
            ops[mix] = max(ops.get(mix, 0.0), run["OPS"])
    if not bandwidth:
        raise ValueError("peaks_bench measured no memory bandwidth")
    return Peaks(bandwidth, ops)


def rows(*measured):
    """Of a table: what, and how much each time."""
    yield "reading memory", *(f"{one.bandwidth / 1e9:.1f} GB/s" for one in measured)
    for isa, mix in measured[0].ops:
        kind, _, sums = mix.partition(":")
        name = f"{isa}, {kind}" + (f", {sums} vpmaddubsw per vpmaddwd" if sums else "")
        unit = "GOPS" if kind == "int8" else "GFLOPS"
        yield name, *(f"{one.ops[isa, mix] / 1e9:.0f} {unit}" if (isa, mix) in one.ops else "-" for one in measured)
