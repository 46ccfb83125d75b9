#!/usr/bin/env python3
"""Writes the tables of counts in docs/cuda-kernels.md: what products of each number of tokens read and issue, by machine code.

usage: product_counts.py

Compiles the kernels for sm_90a and counts the instructions of their main loops; both sides of a branch count. Needs nvcc and
cuobjdump, no GPU. Grids are those of kernels/cuda/matmul (gemv_blocks.h, gemm_blocks.h) and kernels/cuda/moe (sorted_choices.cc) on 132
multiprocessors. Experts are chosen with equal probability: their numbers are expected values.
"""

import math
import re
import subprocess
import tempfile

import kernel_report

ROWS, COLS = 14336, 4096  # one of gate and up of the 8B shape
GROUPS, OCTETS = COLS // 32, COLS // 256
MULTIPROCESSORS = 132
INPUT_BYTES = 48  # of an Int8Group
# Type: its number in tensor::Type, file, bytes of 256 columns.
TYPES = {"Q4_K": (12, "blocks_of_256", 144), "Q6_K": (14, "blocks_of_256", 210), "Q8_0": (8, "blocks_of_32", 272)}
TOKENS = [1, 2, 4, 5, 8, 9, 16, 17, 32, 33, 64, 128, 256]
# Gate and up of a layer: experts, how many a token chooses, rows, columns.
EXPERTS = [(128, 8, 2 * 768, 2048), (8, 2, 2 * 14336, 4096)]
EXPERT_TOKENS = [1, 4, 8, 9, 12, 16, 32, 64, 128, 256]
FEW = 4  # choices of a piece that the GEMV takes, once choices are sorted
SKIP = 2  # instructions of a choice that a piece of fewer than 8 does not have


def machine_code(file):
    """Kernel's mangled name -> its instructions as (address, text)."""
    with tempfile.TemporaryDirectory() as folder:
        out = f"{folder}/out.cubin"
        subprocess.run(["nvcc", "-cubin", "-x", "cu", "-gencode=arch=compute_90a,code=sm_90a", *kernel_report.nvcc_flags(), "-I.",
                        f"kernels/cuda/{file}.cu", "-o", out], cwd=kernel_report.ROOT, check=True)
        text = subprocess.run(["cuobjdump", "-sass", out], capture_output=True, text=True, check=True).stdout
    kernels, name = {}, None
    for line in text.splitlines():
        if match := re.search(r"Function : (\S+)", line):
            name = match.group(1)
            kernels[name] = []
        elif match := re.match(r"\s+/\*([0-9a-f]{4,5})\*/\s+(.*?);", line):
            kernels[name].append((int(match.group(1), 16), match.group(2)))
    return kernels


def main_loop(instructions, unit):
    """Texts of the longest loop that has an instruction `unit`."""
    found = []
    for address, text in instructions:
        match = re.search(r"BRA (?:`\(\S+\)|0x([0-9a-f]+))", text)
        if not match or not match.group(1) or int(match.group(1), 16) >= address:
            continue
        begin = int(match.group(1), 16)
        body = [inside for at, inside in instructions if begin <= at <= address]
        # A branch back from the cold end of a kernel is no loop.
        if any(unit in inside for inside in body) and not any(re.match(r"EXIT", inside) for inside in body) and len(body) > len(found):
            found = body
    return found


def gemv(code, number, tokens, row_bytes):
    of_kernel, rows = (1, 1) if tokens == 1 else (2, 2) if tokens == 2 else (4, 2)
    name = next(n for n in code if f"E{number}ELi{of_kernel}ELi{rows}E" in n)
    body = main_loop(code[name], "IDP")
    groups = sum("IDP" in text for text in body) / (8 * of_kernel * rows)  # of a lane in an iteration
    warps = ROWS / (4 * rows)
    return f"GEMV, {rows} x {of_kernel}", warps * (GROUPS / 8 / groups) * len(body), ROWS * row_bytes, 0


def tile(code, number, tokens, row_bytes):
    width = 16 if tokens <= 16 else 32
    runs = -(-tokens // width)
    height = 64 if ROWS // 64 * runs >= MULTIPROCESSORS else 32
    name = next(n for n in code if f"E{number}ELj{height}ELj{width}E" in n)
    body = main_loop(code[name], "IMMA")
    blocks = runs * -(-ROWS // height)
    return (f"tile, {height} x {width}", blocks * OCTETS * 8 * len(body), blocks * height * row_bytes,
            blocks * width * GROUPS * INPUT_BYTES)


def table():
    lines = ["| weight | tokens | kernel, rows x tokens | weight, MB from memory | weight and inputs, MB from L2 | warp instructions, million |",
             "| --- | --- | --- | --- | --- | --- |"]
    ratios = []
    for name, (number, file, bytes_of_256) in TYPES.items():
        code = {kind: machine_code(f"matmul/{kind}_{file}") for kind in ("gemv", "gemm")}
        row_bytes, counts = OCTETS * bytes_of_256, {}
        for tokens in TOKENS:
            kernel, issued, weight, inputs = (gemv(code["gemv"], number, tokens, row_bytes) if tokens <= 4 else
                                              tile(code["gemm"], number, tokens, row_bytes))
            counts[tokens] = issued
            from_l2 = f"{(weight + inputs) / 1e6:.0f}" if inputs else ""
            lines.append(f"| {name} | {tokens} | {kernel} | {ROWS * row_bytes / 1e6:.0f} | {from_l2} | {issued / 1e6:.1f} |")
        ratios.append(f"{name} {counts[9] / counts[8]:.2f}")
    return [*lines, "", f"Warp instructions at 9 tokens over those at 8: {', '.join(ratios)}."]


def per_row(gemv_code, gemm_code, number):
    """Instructions for a row of an expert and 256 columns: of the GEMV, by its tokens and a piece's choices; of tiles, by their shape."""

    def group(tokens):
        body = main_loop(next(gemv_code[n] for n in gemv_code if f"E{number}ELj{tokens}E" in n), "IDP")
        return len(body) / (sum("IDP" in text for text in body) / (8 * tokens))

    one, eight = group(1), group(8)
    choice = (eight - one) / 7

    def of_gemv(tokens, choices):
        # A warp has four rows; 256 columns are one group of each of a row's eight lanes.
        return one / 4 if tokens == 1 else (one + (choices - 1) * choice + (8 - choices) * SKIP) / 4

    def of_tile(height, width):
        return len(main_loop(next(gemm_code[n] for n in gemm_code if f"E{number}ELj{height}ELj{width}E" in n), "IMMA")) * 8 / height

    return of_gemv, of_tile


def pieces(choices, tokens, size):
    """Choices of an expert -> the pieces that the GEMV takes, and how many tiles there are."""
    if tokens <= 8:
        return [choices], 0
    tiles, rest = divmod(choices, size)
    return ([rest], tiles) if 0 < rest <= FEW else ([], tiles + (rest > 0))


def expert_row(experts, chosen, rows, cols, tokens, of_gemv, of_tile, row_bytes):
    size = 16 if tokens * chosen <= 16 * experts else 32
    height = 64 if rows // 64 * -(-tokens * chosen // size) >= MULTIPROCESSORS else 32
    p = chosen / experts
    used = gemvs = tiles = issued = 0
    for choices in range(1, tokens + 1):
        expected = experts * math.comb(tokens, choices) * p**choices * (1 - p)**(tokens - choices)
        small, large = pieces(choices, tokens, size)
        used += expected
        gemvs += expected * len(small)
        tiles += expected * large
        issued += expected * (sum(of_gemv(tokens, piece) for piece in small) + large * of_tile(height, size))
    issued *= rows * (cols // 256)
    tile_of = f", {height} x {size}" if tiles >= 0.05 else ""
    return issued, (f"| {chosen} of {experts} | {tokens} | {used:.1f} | {gemvs:.1f} | {tiles:.1f}{tile_of} | {used * rows * row_bytes / 1e6:.0f} | "
                    f"{issued / 1e6:.1f} |")


def expert_table():
    lines = ["| experts | tokens | experts chosen | pieces for the GEMV | tiles | weight, MB from memory | warp instructions, million |",
             "| --- | --- | --- | --- | --- | --- | --- |"]
    number, file, bytes_of_256 = TYPES["Q4_K"]
    of_gemv, of_tile = per_row(machine_code("moe/grouped_gemv_up"), machine_code(f"matmul/gemm_{file}"), number)
    ratios = []
    for experts, chosen, rows, cols in EXPERTS:
        counts = {}
        for tokens in EXPERT_TOKENS:
            counts[tokens], line = expert_row(experts, chosen, rows, cols, tokens, of_gemv, of_tile, cols // 256 * bytes_of_256)
            lines.append(line)
        ratios.append(f"{chosen} of {experts} {counts[9] / counts[8]:.2f}")
    return [*lines, "", f"Warp instructions at 9 tokens over those at 8: {', '.join(ratios)}."]


if __name__ == "__main__":
    for name, lines in (("counts", table()), ("expert counts", expert_table())):
        kernel_report.DOC.write_text(kernel_report.replace(kernel_report.DOC.read_text(), name, lines))
        print(lines[-1])
