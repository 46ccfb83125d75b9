#!/usr/bin/env python3
"""Writes the tables of docs/cuda-kernels.md: every kernel's use of a multiprocessor, its floor, and predicted times.

usage: kernel_report.py [--launches PROGRAM]

Registers, stack frames and spills are ptxas's, for both machine codes; what multiplies on tensor cores and the widest load of global
memory are read from the machine code. Shared memory is dynamic: what a launch asks for at the shapes of tests/kernels/cuda/table comes
from PROGRAM, bazel's //tests/kernels/cuda/table:op_launches, which encodes those ops without running them, and so do the launches that
predictions count; without --launches the column is empty and the predictions stay as they are. Needs nvcc, c++filt, and cuobjdump with
nvdisasm (of the CUDA Toolkit, or PyPI's nvidia-cuda-cuobjdump and nvidia-cuda-nvdisasm), no GPU.
"""

import argparse
import ast
import collections
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import launches  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "kernels/cuda"
DOC = ROOT / "docs/cuda-kernels.md"
ARCHITECTURES = {"sm_80": "compute_80", "sm_90a": "compute_90a"}


def nvcc_flags():
    """The build's own (bazel/cuda.bzl)."""
    text = (ROOT / "bazel/cuda.bzl").read_text()
    return ast.literal_eval(re.search(r"^_NVCC_FLAGS = (\[.*?^\])", text, re.M | re.S).group(1))


def run(command):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def compile_verbose(job):
    """(path, architecture) -> ptxas's report and the machine code."""
    path, architecture = job
    with tempfile.TemporaryDirectory() as folder:
        done = run(["nvcc", "-cubin", "-x", "cu", f"-gencode=arch={ARCHITECTURES[architecture]},code={architecture}", *nvcc_flags(),
                    "-Xptxas", "-v", "-I.", str(path.relative_to(ROOT)), "-o", f"{folder}/out.cubin"])
        code = run(["cuobjdump", "-sass", f"{folder}/out.cubin"])
    for part in (done, code):
        if part.returncode != 0:
            sys.exit(f"kernel_report: {path.name}: {part.stderr.strip()}")
    return done.stdout + done.stderr, code.stdout


def load_bits(instruction):
    """Of one lane, by the suffixes of LDG or LDGSTS."""
    widths = re.findall(r"\.(?:[SU])?(8|16|64|128)\b", instruction)
    return int(widths[-1]) if widths else 32


def parse_code(code):
    """Mangled name -> (its instructions of tensor cores, bits of the widest load by an address in global memory)."""
    found = {}
    for text in code.split("Function : ")[1:]:
        instructions = re.findall(r"^\s+/\*[0-9a-f]+\*/\s+(?:@!?\w+ )?([\w.]+)", text, re.M)
        tensor = {one.split(".")[0] for one in instructions if one.startswith(("HMMA", "IMMA", "HGMMA", "IGMMA"))}
        loads = [load_bits(one) for one in instructions if one.startswith(("LDG.", "LDGSTS."))]
        found[text.split()[0]] = tensor, max(loads, default=0)
    return found


def parse(report):
    """Yields (mangled name, registers, stack bytes, spill bytes)."""
    name, stack, spills = None, 0, 0
    for line in report.splitlines():
        if match := re.search(r"Compiling entry function '(\S+)'", line):
            name, stack, spills = match.group(1), 0, 0
        elif match := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
            # Device functions that are not inlined have separate lines, which count for the kernel.
            stack += int(match.group(1))
            spills += int(match.group(2)) + int(match.group(3))
        elif (match := re.search(r"Used (\d+) registers", line)) and name:
            yield name, int(match.group(1)), stack, spills
            name = None


def demangle(names):
    """Kernels' names without namespaces, template arguments and parameters."""
    text = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True).stdout
    return {name: re.search(r"(\w+?Kernel\w*|\w+)(?:<|\()", re.sub(r"^.*?(?=\w*Kernel)", "", shown)).group(1)
            for name, shown in zip(names, text.splitlines())}


def floor_of(path):
    """The floor given in a file, or in the first of its own headers with one."""
    text = path.read_text()
    own = [ROOT / name for name in re.findall(r'#include "(kernels/cuda/[\w/]+\.h)"', text)]
    for source in [text, *(header.read_text() for header in own if header.exists())]:
        if match := re.search(r"// Floor: (.*(?:\n// .+)*)", source):
            return re.sub(r"\s*\n// ", " ", match.group(1))
    return ""


def tensor_cores(forms):
    """The instructions of all forms; with `none` if some form has none."""
    forms = list(forms)
    every = sorted(set().union(*forms))
    return " and ".join(every + ["none"] * bool(every and not all(forms)))


def span(values):
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low} to {high}"


def kernel_table(shared):
    files = sorted(KERNELS.rglob("*.cu"))
    jobs = [(path, architecture) for path in files for architecture in ARCHITECTURES]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        reports = dict(zip(jobs, pool.map(compile_verbose, jobs)))
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for (path, architecture), (report, code) in reports.items():
        entries = list(parse(report))
        shown, codes = demangle([entry[0] for entry in entries]), parse_code(code)
        for name, *figures in entries:
            found[path, shown[name]][architecture].append((*figures, *codes[name]))
    lines = ["| kernel | file | forms | registers, sm_80 | sm_90a | shared memory, bytes | tensor cores | widest load, bits "
             "| stack, bytes | spills, bytes |",
             "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for (path, kernel), figures in found.items():
        everything = [one for entries in figures.values() for one in entries]
        lines.append("| " + " | ".join([
            f"`{kernel}`", str(path.relative_to(KERNELS)), str(len(figures["sm_90a"])),
            *(span([one[0] for one in figures[a]]) for a in ARCHITECTURES),
            span(shared[kernel]) if kernel in shared else "", tensor_cores(one[3] for one in everything),
            span([one[4] for one in everything]), span([one[1] for one in everything]), span([one[2] for one in everything])]) + " |")
    total = sum(len(figures["sm_90a"]) for figures in found.values())
    spilling = sorted({kernel for (_, kernel), figures in found.items() for entries in figures.values() for one in entries if one[2]})
    lines += ["", f"{total} kernels in {len(files)} files; " +
              (f"spills: {', '.join(spilling)}." if spilling else "none spills on either architecture.")]
    floors = ["| file | floor |", "| --- | --- |", *(f"| {path.relative_to(KERNELS)} | {floor_of(path)} |" for path in files)]
    return lines, floors, spilling


def replace(text, name, lines):
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    if begin not in text or end not in text:
        sys.exit(f"kernel_report: {DOC.name} has no place for {name}")
    return text[:text.index(begin) + len(begin)] + "\n".join(lines) + "\n" + text[text.index(end):]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--launches", help="op_launches, built")
    arguments = parser.parse_args()
    cases = launches.read(arguments.launches, demangle) if arguments.launches else []
    kernels, floors, spilling = kernel_table(launches.shared_bytes(cases))
    text = DOC.read_text()
    tables = {"kernels": kernels, "floors": floors}
    if cases:
        tables["predictions"] = launches.prediction_table(cases)
    for name, lines in tables.items():
        text = replace(text, name, lines)
    DOC.write_text(text)
    print(kernels[-1])
    return 1 if spilling else 0


if __name__ == "__main__":
    sys.exit(main())
