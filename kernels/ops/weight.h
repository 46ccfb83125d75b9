// A weight as ops read it.
#ifndef TANDEM_KERNELS_OPS_WEIGHT_H_
#define TANDEM_KERNELS_OPS_WEIGHT_H_

#include <cstdint>

#include "common/tensor/type.h"

namespace tandem::kernels {

// Which ops read a weight; a backend chooses its layout and place by it.
enum class WeightUse : uint8_t {
  kProduct,  // MatMul and ExpertMatMul, perhaps Embed as well
  kHeads,    // HeadMatMul: a head's rows may begin anywhere
  kLookup,   // Embed alone
};

// A weight as the backend holds it (Backend::PlaceWeight). The matrix has `rows` x `cols` values;
// inputs cover only columns [col_begin, col_begin + col_count): the rest belongs to another rank (a
// row-parallel cut inside a quantised block) and counts as multiplied by zero.
struct Weight {
  tensor::Type type = tensor::Type::kF32;
  const void* data = nullptr;
  uint32_t rows = 0;
  uint32_t cols = 0;
  uint64_t row_stride_bytes = 0;
  uint32_t col_begin = 0;
  uint32_t col_count = 0;
  // More than one for experts: contiguous matrices of the same shape.
  uint32_t count = 1;
  uint64_t matrix_stride_bytes = 0;
  WeightUse use = WeightUse::kProduct;
  // 0: rows, row_stride_bytes apart. Otherwise panels of so many rows (kernels/host/panels.h).
  uint32_t panel_rows = 0;
  // (count), in host memory: factors of the products, before a bias. Null: 1.
  const float* scales = nullptr;

  float scale(uint32_t matrix) const { return scales == nullptr ? 1.0f : scales[matrix]; }
};

}  // namespace tandem::kernels

#endif  // TANDEM_KERNELS_OPS_WEIGHT_H_
