// Activations in the forms that a product's kernels read (Activations), in the op call's shared
// scratch: quantised rows, then rows of BF16 pairs.
#ifndef TANDEM_KERNELS_CPU_MATMUL_CONVERSION_H_
#define TANDEM_KERNELS_CPU_MATMUL_CONVERSION_H_

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/matmul/product.h"
#include "kernels/cpu/matmul/quant_block.h"
#include "kernels/cpu/matmul/window.h"
#include "kernels/host/op_list.h"
#include "kernels/ops.h"

namespace tandem::kernels::cpu {

struct Conversion {
  const float* x;
  size_t x_stride;
  uint32_t tokens;
  uint32_t count;   // values of a row
  uint32_t lead;    // zeros before a quantised row
  uint32_t blocks;  // of a quantised row; 0: none is needed
  uint32_t pairs;   // of a row of pairs; 0: none is needed
  size_t at;        // bytes from the scratch's start, whole lines

  bool needed() const { return blocks + pairs > 0; }
  size_t pairs_at() const { return at + QuantRowsBytes(tokens, blocks); }
  size_t end() const { return RoundToLine(pairs_at() + size_t{tokens} * pairs * sizeof(uint32_t)); }
};

// `all`: the columns that are quantised, QuantisedWindow(params).
Conversion MakeConversion(const MatMulParams& params, const MatMulKernels& kernels,
                          const Window& all, size_t at);

// Values [col, col + count) of rows [begin, end). If rows are quantised, lead + col is a multiple
// of 32, and so is count, but for the last values. The zeros around a row are written with its
// first and its last values.
struct ConversionRange {
  uint32_t begin;
  uint32_t end;
  uint32_t col;
  uint32_t count;
};
// x: the range's first value, in rows x_stride apart.
void Convert(const float* x, size_t x_stride, const Conversion& c, const ConversionRange& range,
             std::byte* shared);

// The norm that writes the activations, one row per token.
struct NormBefore {
  RmsNormTask task = {};
  RmsNormFn run = nullptr;  // null: there is none
};

// One entry that converts all rows, if that is needed, after `norm`.
void EncodeConversion(host::OpList& list, const Conversion& conversion, const NormBefore& norm);

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_CONVERSION_H_
