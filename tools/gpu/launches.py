"""What op_launches (//tests/kernels/cuda/table) says of the table's ops: their kernels, and how long they would take if only bytes,
operations and launches counted."""

import collections
import dataclasses
import os
import subprocess

# Measured on an H200 (docs/gpu-results.md): bytes read and operations of a BF16 product per second, and the seconds of an op of one launch
# that reads next to nothing, RmsNorm and RopeWriteKv of one row.
READ, RATE, LAUNCH = 4.5e12, 775e12, 2.3e-6
MULTIPROCESSORS = 132

# What comes before or after a product. Where a call launches nothing else, the product is cuBLASLt's, and its blocks are not known.
BESIDE_PRODUCTS = {"DequantizeRowsKernel", "GroupChoicesKernel", "HalfRowsKernel", "QuantizeRowsKernel", "RoundRowsKernel", "ScaleRowsKernel",
                   "SumChoicesKernel"}


@dataclasses.dataclass
class Launch:
    kernel: str
    blocks: int
    shared: int


@dataclasses.dataclass
class Case:
    op: str
    shape: str
    bytes: float
    operations: float
    launches: list = dataclasses.field(default_factory=list)

    def floor(self):
        return max(self.bytes / READ, self.operations / RATE)

    def predicted(self):
        """Multiprocessors without a block of the largest product multiply nothing; memory is read as fast by few."""
        products = [launch.blocks for launch in self.launches if launch.kernel not in BESIDE_PRODUCTS]
        most = max(products, default=MULTIPROCESSORS)
        rounds = -(-most // MULTIPROCESSORS)
        busy = most / (rounds * MULTIPROCESSORS)
        return len(self.launches) * LAUNCH + max(self.bytes / READ, self.operations / (RATE * busy))


def symbols_of(program):
    """Address -> mangled name."""
    lines = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout.splitlines()
    return {int(parts[0], 16): parts[2] for parts in (line.split() for line in lines) if len(parts) == 3 and parts[1] in "tTwWvV"}


def parse(text, symbols, demangle):
    """The cases in op_launches' words. demangle: mangled names -> the names of kernels."""
    cases, base = [], 0
    for kind, *fields in (line.split("\t") for line in text.splitlines()):
        if kind == "main":
            base = int(fields[0], 16) - next(address for address, name in symbols.items() if name == "main")
        elif kind == "case":
            cases.append(Case(fields[0], fields[1], float(fields[2]), float(fields[3])))
        else:
            cases[-1].launches.append(Launch(symbols[int(fields[0], 16) - base], int(fields[1]), int(fields[2])))
    launches = [launch for case in cases for launch in case.launches]
    names = demangle(sorted({launch.kernel for launch in launches}))
    for launch in launches:
        launch.kernel = names[launch.kernel]
    return cases


def read(program, demangle):
    environment = os.environ | {"TANDEM_EMULATED_SMS": str(MULTIPROCESSORS)}
    text = subprocess.run([program], capture_output=True, text=True, check=True, env=environment).stdout
    return parse(text, symbols_of(program), demangle)


def shared_bytes(cases):
    """Kernel -> what its launches ask for."""
    asked = collections.defaultdict(set)
    for case in cases:
        for launch in case.launches:
            asked[launch.kernel].add(launch.shared)
    return asked


def prediction_table(cases):
    """Of each kernel the shortest and the longest call that launches it."""
    calls = collections.defaultdict(list)
    for case in cases:
        for kernel in {launch.kernel for launch in case.launches}:
            calls[kernel].append(case)
    lines = ["| kernel | calls | shortest | launches | floor, us | predicted, us | longest | launches | floor, us | predicted, us |",
             "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for kernel, those in sorted(calls.items()):
        ends = [min(those, key=Case.predicted), max(those, key=Case.predicted)]
        shown = [f"{one.op} {one.shape} | {len(one.launches)} | {one.floor() * 1e6:.1f} | {one.predicted() * 1e6:.1f}" for one in ends]
        lines.append(f"| `{kernel}` | {len(those)} | " + " | ".join(shown) + " |")
    return lines
