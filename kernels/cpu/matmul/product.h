// One projection of a MatMul as passed to kernels, and the table of kernels of an instruction set.
#ifndef TANDEM_KERNELS_CPU_MATMUL_PRODUCT_H_
#define TANDEM_KERNELS_CPU_MATMUL_PRODUCT_H_

#include <cstddef>
#include <cstdint>

namespace tandem::kernels::cpu {

// How many bytes ahead of their use panels are fetched to a cache.
struct PanelAhead {
  uint32_t to_l2;  // 0: to L1 alone
  uint32_t to_l1;
};
// Where the processor has no better way (BestPanelAhead), and of one panel after another where
// activations need the L1 cache.
inline constexpr PanelAhead kToL2ThenL1 = {8192, 1024};

// y[t, r] = scale * sum over the window's columns of x[t, c] * W[r, c] (+ bias[r]).
struct Product {
  const std::byte* weights;  // row 0, at the window's first column
  uint64_t stride_bytes;     // between rows; times 16 below 2^31. In panels, a row's share of one
  bool in_panels;            // of as many rows as the kernels have lanes (kernels/host/panels.h)
  uint32_t rows;
  uint32_t cols;      // of the window; whole blocks of a quantised format
  const void* x;      // (tokens, cols) in the kernel's Activations
  size_t x_stride;    // in elements of x
  const float* bias;  // (rows) or null
  float* y;           // (tokens, rows)
  size_t y_stride;
  float scale = 1.0f;              // rounded before the bias is added
  PanelAhead ahead = kToL2ThenL1;  // of products that wait for memory; PairAhead's cache as well
};

// The part of a product that one task computes.
struct ProductRange {
  uint32_t row_begin;  // a multiple of kRowAlign
  uint32_t row_end;    // a multiple of it too, or Product::rows
  uint32_t token_begin;
  uint32_t token_end;
};

inline constexpr uint32_t kRowAlign = 16;
// Up to this many tokens, weights are multiplied as they are unpacked.
inline constexpr uint32_t kFewTokens = 32;
// Bytes of unpacked weights per task: a large part of a core's L2 cache.
inline constexpr size_t kPackedBytes = size_t{640} << 10;

// A part of a weight to be unpacked as floats, transposed.
struct TransposeSource {
  const std::byte* weights;
  uint64_t stride_bytes;  // between rows; times 16 below 2^31
  uint32_t rows;
  uint32_t cols;  // whole blocks
};

// What a kernel multiplies weights with; an element is what an x pointer points to.
enum class Activations : uint8_t {
  kFloats,       // float
  kQuantBlocks,  // QuantBlock, 32 columns
  kBf16Pairs,    // uint32_t: two columns rounded to BF16, the first in the lower half
};

// The kernel of one weight type.
struct Kernel {
  Activations activations;
  // `scratch` holds scratch_bytes(cols), 64-byte aligned; up to kFewTokens tokens it is not used.
  void (*run)(const Product&, const ProductRange&, std::byte* scratch);
  size_t (*scratch_bytes)(uint32_t cols);
  // out[c * out_stride + r] = W[r, c], bit for bit. `out_stride` has room for rows rounded up to
  // kRowAlign; values past the last row are overwritten.
  void (*transpose)(const TransposeSource& w, float* out, uint32_t out_stride);
};

// The kernels of one instruction set, by family. All sets give the same bits, but for BF16 weights
// where activations are rounded to BF16.
struct FloatKernels {
  Kernel f32, f16, bf16;
};
struct Blocks32Kernels {
  Kernel q8_0, q4_0, q4_1, q5_0, q5_1;
};
struct Blocks256Kernels {
  Kernel q2_k, q3_k, q4_k, q5_k, q6_k;
};
struct CodebookKernels {
  Kernel iq4_nl, iq4_xs, mxfp4, nvfp4;
};
struct GridKernels {
  Kernel iq1_s, iq1_m, iq2_xxs, iq2_xs, iq2_s, iq3_xxs, iq3_s;
};
struct FewBitKernels {
  Kernel q1_0, q2_0, tq1_0, tq2_0;
};
struct MatMulKernels {
  const char* name;  // "avx2", "avx2-vnni", "avx512", "avx512-vnni", "avx512-bf16"
  uint32_t lanes;    // rows of the panels that they read
  const FloatKernels& floats;
  const Kernel& bf16;  // floats.bf16, or one with kBf16Pairs
  const Blocks32Kernels& blocks_32;
  const Blocks256Kernels& blocks_256;
  const CodebookKernels& codebook;
  const GridKernels& grid;
  const FewBitKernels& few_bits;
};

extern const MatMulKernels kAvx2Kernels;
extern const MatMulKernels kAvx2VnniKernels;
extern const MatMulKernels kAvx512Kernels;
extern const MatMulKernels kAvx512VnniKernels;
extern const MatMulKernels kAvx512Bf16Kernels;

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_PRODUCT_H_
