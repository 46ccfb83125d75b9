// Which columns of a weight a product reads, and how activations are quantised for them.
#ifndef TANDEM_KERNELS_CPU_MATMUL_WINDOW_H_
#define TANDEM_KERNELS_CPU_MATMUL_WINDOW_H_

#include <algorithm>
#include <cstdint>

#include "common/base/check.h"
#include "common/tensor/type.h"
#include "kernels/cpu/matmul/product.h"
#include "kernels/cpu/matmul/quant_block.h"
#include "kernels/ops.h"

namespace tandem::kernels::cpu {

inline uint32_t CeilDiv(uint64_t a, uint64_t b) { return static_cast<uint32_t>((a + b - 1) / b); }
inline uint32_t RoundUp(uint64_t a, uint64_t b) { return CeilDiv(a, b) * static_cast<uint32_t>(b); }

inline bool IsQuantised(const Weight& weight) {
  return tensor::Traits(weight.type).block_values > 1;
}

// Columns [begin, end) of a weight: the rank's part, widened to whole blocks of `align` columns.
struct Window {
  uint32_t begin = 0;
  uint32_t end = 0;

  uint32_t cols() const { return end - begin; }
  uint32_t quant_blocks() const { return cols() / QuantBlock::kValues; }
};

inline Window GrowTo(const Weight& weight, uint32_t align) {
  return {weight.col_begin / align * align, RoundUp(weight.col_begin + weight.col_count, align)};
}

inline Window WindowOf(const Weight& weight) {
  return GrowTo(weight, tensor::Traits(weight.type).block_values);
}

inline void CheckColumns(const Weight& w) {
  TANDEM_CHECK(w.col_begin <= w.cols && w.col_count <= w.cols - w.col_begin)
      << w.col_begin << " + " << w.col_count << " of " << w.cols << " columns";
  TANDEM_CHECK(w.row_stride_bytes * kRowAlign < uint64_t{1} << 31);
}

// The projections of a MatMul or ExpertMatMul read the same columns.
template <class Params>
void CheckProjections(const Params& params) {
  const Weight& first = params.projections[0].weight;
  for (uint32_t i = 0; i < params.num_projections; ++i) {
    const Weight& w = params.projections[i].weight;
    TANDEM_CHECK(w.cols == first.cols && w.col_begin == first.col_begin &&
                 w.col_count == first.col_count)
        << "projection " << i;
    CheckColumns(w);
  }
}

// The one window of activations that all quantised projections read, in whole blocks of the
// largest; empty if none is quantised.
template <class Params>
Window QuantisedWindow(const Params& params) {
  uint32_t align = 0;
  for (uint32_t i = 0; i < params.num_projections; ++i) {
    const Weight& weight = params.projections[i].weight;
    if (IsQuantised(weight)) align = std::max(align, tensor::Traits(weight.type).block_values);
  }
  return align == 0 ? Window() : GrowTo(params.projections[0].weight, align);
}

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_WINDOW_H_
