// Which columns of a weight a product reads, and how activations are quantised for them.
#ifndef TANDEM_KERNELS_CPU_MATMUL_WINDOW_H_
#define TANDEM_KERNELS_CPU_MATMUL_WINDOW_H_

#include <cstdint>

#include "common/tensor/type.h"
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

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_WINDOW_H_
