// MatMul: quantised weights are multiplied as they are, with one token in bytes by a GEMV, with
// more on tensor cores in BF16; plain ones in floats by a GEMV, or for more tokens by dense GEMM
// (cuBLASLt). Many tokens use dense GEMM on BF16 copies of quantised weights too, dequantised a
// tile at a time.

#include "kernels/cuda/matmul/matmul.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "common/base/check.h"
#include "common/tensor/type.h"
#include "kernels/cuda/dense_gemm.h"
#include "kernels/cuda/device/blocks_dispatch.h"
#include "kernels/cuda/matmul/activations.h"
#include "kernels/cuda/matmul/add_bias.h"
#include "kernels/cuda/matmul/block_product.h"
#include "kernels/cuda/matmul/dequantize_rows.h"
#include "kernels/cuda/matmul/gemv.h"
#include "kernels/cuda/matmul/half_rows.h"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/rows/quantize_rows.h"

namespace tandem::kernels::cuda {
namespace {

struct Problem {
  RowsOfX x;
  const MatMulParams& params;
  const AddRowsParams* add = nullptr;  // what follows a product that is not dense
  RopeEnd end = {};

  const Projection& projection(uint32_t i) const { return params.projections[i]; }
  tensor::Type type(uint32_t i) const { return projection(i).weight.type; }
  ColumnRange columns() const { return x.columns; }
};

// --- weights that are not converted in memory ---

// Whether projections i and j are parts of one launch.
bool InOneLaunch(const Problem& problem, uint32_t i, uint32_t j) {
  const tensor::Type a = problem.type(i), b = problem.type(j);
  return a == b || MixTypes(a, b);
}

// The projections in one launch with projection i; none if an earlier one is among them.
MatVecParts PartsWith(const Problem& problem, uint32_t i) {
  MatVecParts parts;
  for (uint32_t j = 0; j < problem.params.num_projections; ++j) {
    if (!InOneLaunch(problem, i, j)) continue;
    if (j < i) return {};
    MatVecPart& part = parts.part[parts.count++];
    part = PartOf(problem.projection(j));
    if (problem.add == nullptr) continue;
    part.y = problem.add->y;
    part.y_stride = problem.add->dim;
    part.adds = true;
    part.gate = problem.add->gate;
  }
  return parts;
}

// The products of all projections in one launch with projection i.
void EncodeInPlace(Stream& stream, const Problem& problem, uint32_t i, const Activations& scratch) {
  const MatVecParts parts = PartsWith(problem, i);
  if (parts.count == 0) return;
  const tensor::Type type = problem.type(i);
  if (IsPlain(type)) return EncodePlainMatVec(stream, type, parts, problem.x);
  if (problem.x.rows == 1) {
    EncodeBlockMatVec(stream, parts, scratch.groups, problem.columns(), problem.end);
  } else {
    EncodeBlockProduct(stream, parts, InputsOf(scratch, problem.x), problem.end);
  }
}

// --- dense ---

GemmParams GemmOf(const Problem& problem, const Projection& projection, uint32_t row_begin,
                  uint32_t rows) {
  GemmParams gemm;
  gemm.c = projection.y + row_begin;
  gemm.c_stride = projection.y_stride;
  gemm.m = problem.x.rows;
  gemm.n = rows;
  return gemm;
}

void EncodeF32(Stream& stream, DenseGemm& gemm, const Problem& problem,
               const Projection& projection) {
  const Weight& weight = projection.weight;
  GemmParams params = GemmOf(problem, projection, 0, weight.rows);
  params.type = GemmParams::Type::kF32;
  params.a = problem.x.x;
  params.a_stride = problem.x.x_stride;
  params.b = static_cast<const float*>(weight.data) + weight.col_begin;
  params.b_stride = static_cast<uint32_t>(weight.row_stride_bytes / sizeof(float));
  params.k = weight.col_count;
  gemm.Encode(stream, params);
}

// Values of a row of 16 bits before those that a dense product takes, in whole units of 8 columns.
uint32_t SkippedOf(const Problem& problem) {
  return 8 * problem.columns().First(8) - 32 * problem.columns().First(32);
}

GemmParams GemmOf16Bits(const Problem& problem, const Projection& projection, uint32_t row_begin,
                        uint32_t rows, const Activations& scratch) {
  GemmParams params = GemmOf(problem, projection, row_begin, rows);
  params.type = GemmParams::Type::kBf16;
  params.a = scratch.bf16 + SkippedOf(problem);
  params.a_stride = scratch.cols;
  params.k = 8 * problem.columns().Units(8);
  return params;
}

// F16 or BF16, read in place.
void EncodeHalves(Stream& stream, DenseGemm& gemm, const Problem& problem,
                  const Projection& projection, const Activations& scratch) {
  const Weight& weight = projection.weight;
  GemmParams params = GemmOf16Bits(problem, projection, 0, weight.rows, scratch);
  params.b = static_cast<const uint16_t*>(weight.data) + 8 * problem.columns().First(8);
  params.b_stride = static_cast<uint32_t>(weight.row_stride_bytes / sizeof(uint16_t));
  if (weight.type != tensor::Type::kF16) return gemm.Encode(stream, params);
  params.type = GemmParams::Type::kF16;
  params.a = scratch.f16 + SkippedOf(problem);
  gemm.Encode(stream, params);
  EncodeScaleRows(stream, scratch.exponents, params.c, params.m, params.n, params.c_stride);
}

void EncodeQuantised(Stream& stream, DenseGemm& gemm, const Problem& problem,
                     const Projection& projection, const Activations& scratch) {
  const Weight& weight = projection.weight;
  for (uint32_t row = 0; row < weight.rows; row += scratch.tile_rows) {
    const uint32_t rows = std::min(scratch.tile_rows, weight.rows - row);
    GemmParams params = GemmOf16Bits(problem, projection, row, rows, scratch);
    EncodeDequantizeRows(stream, weight, row, rows, problem.columns(), scratch.tile);
    params.b = scratch.tile;
    params.b_stride = params.k;
    gemm.Encode(stream, params);
  }
}

void EncodeDense(Stream& stream, DenseGemm& gemm, const Problem& problem,
                 const Projection& projection, const Activations& scratch) {
  const tensor::Type type = projection.weight.type;
  if (type == tensor::Type::kF32) {
    EncodeF32(stream, gemm, problem, projection);
  } else if (IsPlain(type)) {
    EncodeHalves(stream, gemm, problem, projection, scratch);
  } else {
    EncodeQuantised(stream, gemm, problem, projection, scratch);
  }
  if (projection.bias == nullptr) return;
  EncodeAddBias(stream, projection.bias, projection.y, problem.x.rows, projection.weight.rows,
                projection.y_stride);
}

// --- both ---

void EncodeProblem(Stream& stream, DenseGemm& gemm, const RowsBefore& before,
                   const Problem& problem) {
  const Activations scratch = EncodeActivations(stream, before, problem.params);
  for (uint32_t i = 0; i < problem.params.num_projections; ++i) {
    if (IsDense(problem.type(i), problem.x.rows)) {
      EncodeDense(stream, gemm, problem, problem.projection(i), scratch);
    } else {
      EncodeInPlace(stream, problem, i, scratch);
    }
  }
}

}  // namespace

void EncodeProduct(Stream& stream, DenseGemm& gemm, const RowsBefore& before,
                   const MatMulAddParams& params) {
  TANDEM_CHECK(params.product.num_projections == 1) << params.product.num_projections;
  const Projection& projection = params.product.projections[0];
  TANDEM_CHECK(params.add.x == projection.y && params.add.dim == projection.weight.rows &&
               params.add.dim == projection.y_stride && params.add.rows == params.product.tokens)
      << "rows other than the product's are added";
  if (params.product.tokens == 0) return;
  if (!IsDense(projection.weight.type, params.product.tokens) && params.add.scale == 1.0f) {
    EncodeProblem(stream, gemm, before, {RowsOf(params.product), params.product, &params.add});
  } else {
    EncodeProduct(stream, gemm, before, params.product);
    EncodeOp(stream, params.add);
  }
}

void EncodeProduct(Stream& stream, DenseGemm& gemm, const RowsBefore& before,
                   const MatMulParams& params, const RopeEnd& end) {
  if (params.tokens == 0 || params.num_projections == 0) return;
  EncodeProblem(stream, gemm, before, {RowsOf(params), params, /*add=*/nullptr, end});
}

void EncodeOp(Stream& stream, DenseGemm& gemm, const MatMulParams& params) {
  EncodeProduct(stream, gemm, {}, params);
}

void EncodeOp(Stream& stream, DenseGemm& gemm, const MatMulAddParams& params) {
  EncodeProduct(stream, gemm, {}, params);
}

}  // namespace tandem::kernels::cuda
