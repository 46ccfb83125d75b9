"""Options of code for one instruction set.

Only such targets get them, and only after a run-time check is any of their code called.
"""

AVX2_COPTS = [
    "-mavx2",
    "-mfma",
    "-mf16c",
]

AVX512_COPTS = AVX2_COPTS + [
    "-mavx512f",
    "-mavx512bw",
    "-mavx512vl",
    "-mavx512dq",
    "-mprefer-vector-width=512",
]

# Of any set.
ISA_COPTS = [
    "-O3",
    "-ffp-contract=off",
    # gcc 12 warns of its own _mm512_undefined_*.
    "-Wno-maybe-uninitialized",
    "-Wno-uninitialized",
    # gcc 12 does not align the frames of ASan's fake stack for 64-byte vectors (gcc bug 110027).
    "--param=asan-use-after-return=0",
]
