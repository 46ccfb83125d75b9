// Which columns of a weight a product reads, and how activations are quantised for them.
#ifndef TANDEM_KERNELS_CPU_MATMUL_WINDOW_H_
#define TANDEM_KERNELS_CPU_MATMUL_WINDOW_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "common/base/check.h"
#include "common/tensor/type.h"
#include "kernels/cpu/matmul/product.h"
#include "kernels/cpu/matmul/quant_block.h"
#include "kernels/host/window.h"
#include "kernels/ops.h"

namespace tandem::kernels::cpu {

inline uint32_t CeilDiv(uint64_t a, uint64_t b) { return static_cast<uint32_t>((a + b - 1) / b); }
inline uint32_t RoundUp(uint64_t a, uint64_t b) { return CeilDiv(a, b) * static_cast<uint32_t>(b); }

inline constexpr size_t RoundToLine(size_t bytes) { return (bytes + 63) / 64 * 64; }

inline bool IsQuantised(const Weight& weight) {
  return tensor::Traits(weight.type).block_values > 1;
}

using host::Window;
using host::WindowOf;

inline uint32_t QuantBlocks(const Window& window) { return window.cols() / QuantBlock::kValues; }

// Where the first row of a weight begins, at the first column of `window`, WindowOf(weight).
inline const std::byte* FirstRow(const Weight& weight, const Window& window) {
  return static_cast<const std::byte*>(weight.data) +
         (weight.panel_rows > 0 ? 0 : tensor::RowBytes(weight.type, window.begin));
}

// `kernels` must be those that the weight was placed for.
inline void CheckLayout(const Weight& w, const MatMulKernels& kernels) {
  TANDEM_CHECK(w.panel_rows == 0 || w.panel_rows == kernels.lanes)
      << "panels of " << w.panel_rows << " rows, kernels of " << kernels.lanes << " lanes";
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
    TANDEM_CHECK(w.col_count > 0) << "a product over no columns";
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
  return align == 0 ? Window() : host::GrowTo(params.projections[0].weight, align);
}

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_WINDOW_H_
