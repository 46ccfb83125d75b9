"""Options of code for one instruction set.

Only such targets get them, and only after a run-time check is any of their code called.
"""

AVX2_COPTS = [
    "-mavx2",
    "-mfma",
    "-mf16c",
]

def if_simd_emulation(values, otherwise = []):
    return select({
        "//bazel:simd_emulation": values,
        "//conditions:default": otherwise,
    })

def features(*names):
    """Options for what is beyond AVX2: GCC's names of features, such as "avx512vnni".

    With --config=simd_emulation the code sees them, and the compiler does not use them
    (tools/simd_emulation).
    """
    return if_simd_emulation(
        ["-D__%s__=1" % name.upper() for name in names],
        ["-m" + name for name in names],
    )

# Of what differs when it is emulated.
EMULATION_COPTS = if_simd_emulation(["-DTANDEM_SIMD_EMULATION"])

AVX512_COPTS = AVX2_COPTS + features("avx512f", "avx512bw", "avx512vl", "avx512dq") + EMULATION_COPTS + if_simd_emulation(
    [],
    ["-mprefer-vector-width=512"],
)

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
