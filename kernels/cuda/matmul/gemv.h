// The weights of a launch of products, and matrix-vector products for one row of x, or a few rows
// with plain weights: y = x W^T (+ bias) for up to three weights, each weight byte read once.
//
// For MatMul, Qkv and ExpertMatMul only.
#ifndef TANDEM_KERNELS_CUDA_MATMUL_GEMV_H_
#define TANDEM_KERNELS_CUDA_MATMUL_GEMV_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "common/tensor/type.h"
#include "kernels/cuda/device/blocks_dispatch.h"
#include "kernels/cuda/device/int8_group.h"
#include "kernels/cuda/matmul/rope_end.h"
#include "kernels/cuda/rows/quantize_rows.h"
#include "kernels/cuda/stream.h"
#include "kernels/ops.h"

namespace tandem::kernels::cuda {

// Weights of 16 bits: from three tokens on tensor cores are as fast as memory, float units are not.
// Of F32 weights cuBLASLt has to use float units too.
constexpr uint32_t MaxPlainMatVecTokens(tensor::Type type) {
  return type == tensor::Type::kF32 ? 8 : 2;
}

// One weight of a launch.
struct MatVecPart {
  const std::byte* weight;
  uint64_t row_stride_bytes;
  const float* bias;  // or null
  float* y;
  uint32_t rows;
  uint32_t y_stride;
  bool adds = false;            // y += rather than y =
  const float* gate = nullptr;  // (tokens) or null: what is added is times sigmoid(gate)
  // Of a weight with several matrices (experts): how far they and their biases are apart.
  uint64_t matrix_stride_bytes = 0;
  uint32_t bias_stride = 0;
  tensor::Type type = tensor::Type::kF32;  // read for block-quantised dense weights alone
};

struct MatVecParts {
  MatVecPart part[kMaxProjections];
  uint32_t count = 0;

  bool OfOneType() const {
    for (uint32_t i = 1; i < count; ++i)
      if (part[i].type != part[0].type) return false;
    return true;
  }
};

// Whether weights of both types can be parts of one launch: block-quantised, of one type or of one
// of the lists that kernels for several types are made for.
constexpr bool MixTypes(tensor::Type a, tensor::Type b) {
  return (a == b && !IsPlain(a)) || (BlockTypesOf32::Has(a) && BlockTypesOf32::Has(b)) ||
         (BlockTypesOf256::Has(a) && BlockTypesOf256::Has(b));
}

// The part with `matrix` as its only one.
__device__ __forceinline__ MatVecPart PartOfMatrix(MatVecPart part, uint32_t matrix) {
  part.weight += matrix * part.matrix_stride_bytes;
  if (part.bias != nullptr) part.bias += static_cast<size_t>(matrix) * part.bias_stride;
  return part;
}

// A row of a weight; beyond the end the last one.
__device__ __forceinline__ const std::byte* RowOrLast(const MatVecPart& part, uint32_t row) {
  return part.weight + (row < part.rows ? row : part.rows - 1) * part.row_stride_bytes;
}

inline MatVecPart PartOf(const Projection& p) {
  return {.weight = static_cast<const std::byte*>(p.weight.data),
          .row_stride_bytes = p.weight.row_stride_bytes,
          .bias = p.bias,
          .y = p.y,
          .rows = p.weight.rows,
          .y_stride = p.y_stride,
          .type = p.weight.type};
}

// A row of x as groups, the first of which is group first_group of the weight.
struct BlockMatVecInputs {
  const Int8Group* x;
  uint32_t first_group;
  uint32_t groups;
};

// Block-quantised weights of types that MixTypes allows in one launch, with a row from
// EncodeQuantizeRows.
void EncodeBlockMatVec(Stream& stream, const MatVecParts& parts, const Int8Group* x,
                       ColumnRange columns, const RopeEnd& end = {});

// F32, F16 and BF16 weights with float activations; x.rows are the tokens.
void EncodePlainMatVec(Stream& stream, tensor::Type type, const MatVecParts& parts,
                       const RowsOfX& x);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_GEMV_H_
