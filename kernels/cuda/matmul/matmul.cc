// MatMul: few tokens use GEMV kernels that read the quantised weights; many use dense GEMM
// (cuBLASLt): on F32, F16 and BF16 weights as they are, on others' BF16 copies, dequantised a tile
// at a time.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "common/base/check.h"
#include "common/tensor/type.h"
#include "kernels/cuda/dense_gemm.h"
#include "kernels/cuda/device/blocks_dispatch.h"
#include "kernels/cuda/device/int8_group.h"
#include "kernels/cuda/matmul/add_bias.h"
#include "kernels/cuda/matmul/dequantize_rows.h"
#include "kernels/cuda/matmul/gemv.h"
#include "kernels/cuda/matmul/half_rows.h"
#include "kernels/cuda/matmul/quantize_rows.h"
#include "kernels/cuda/matmul/round_rows.h"
#include "kernels/cuda/ops.h"

namespace tandem::kernels::cuda {
namespace {

// A dequantised tile stays in the L2 cache (40 MB on A100, 50 MB on H100 and H200) until it is
// used.
constexpr size_t kTileBytes = size_t{32} << 20;
constexpr uint32_t kTileRowUnit = 128;

struct Problem {
  RowsOfX x;
  const MatMulParams& params;
  const AddRowsParams* add = nullptr;  // what follows a product of few tokens

  const Projection& projection(uint32_t i) const { return params.projections[i]; }
  tensor::Type type(uint32_t i) const { return projection(i).weight.type; }
  ColumnRange columns() const { return x.columns; }
};

Problem ProblemOf(const MatMulParams& params) {
  const Weight& weight = params.projections[0].weight;
  const ColumnRange columns = {weight.col_begin, weight.col_count};
  TANDEM_CHECK(columns.count > 0) << "a product over no columns";
  return {{params.x, params.tokens, params.x_stride, columns}, params};
}

// --- few tokens ---

// The projections with the same weight type as projection i; none if an earlier one has that type.
MatVecParts PartsOfType(const Problem& problem, uint32_t i) {
  MatVecParts parts;
  for (uint32_t j = 0; j < problem.params.num_projections; ++j) {
    if (problem.type(j) != problem.type(i)) continue;
    if (j < i) return {};
    const Projection& p = problem.projection(j);
    MatVecPart& part = parts.part[parts.count++];
    part = {static_cast<const std::byte*>(p.weight.data),
            p.weight.row_stride_bytes,
            p.bias,
            p.y,
            p.weight.rows,
            p.y_stride};
    if (problem.add == nullptr) continue;
    part.y = problem.add->y;
    part.y_stride = problem.add->dim;
    part.adds = true;
    part.gate = problem.add->gate;
  }
  return parts;
}

void EncodeFewTokens(Stream& stream, const Problem& problem) {
  bool quantise = false;
  for (uint32_t i = 0; i < problem.params.num_projections; ++i) {
    quantise |= !IsPlain(problem.type(i));
  }
  Int8Group* groups = nullptr;
  if (quantise) {
    const size_t bytes = sizeof(Int8Group) * problem.x.rows * problem.columns().Units(32);
    groups = reinterpret_cast<Int8Group*>(stream.Scratch(bytes));
    EncodeQuantizeRows(stream, problem.x, groups);
  }
  for (uint32_t i = 0; i < problem.params.num_projections; ++i) {
    const MatVecParts parts = PartsOfType(problem, i);
    if (parts.count == 0) continue;
    if (IsPlain(problem.type(i))) {
      EncodePlainMatVec(stream, problem.type(i), parts, problem.x);
    } else {
      EncodeBlockMatVec(stream, problem.type(i), parts, groups, problem.x.rows, problem.columns());
    }
  }
}

// --- many tokens ---

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

// Activations in 16 bits, and a tile of a weight. Null in a plan pass.
struct GemmScratch {
  uint32_t cols = 0;             // of all rows here
  uint32_t tile_rows = 0;        // 0: no weight is dequantised
  uint16_t* bf16 = nullptr;      // (tokens, cols), for BF16 and quantised weights
  uint16_t* f16 = nullptr;       // (tokens, cols), for F16 weights
  int32_t* exponents = nullptr;  // (tokens), of f16
  uint16_t* tile = nullptr;      // (tile_rows, cols)
};

GemmParams GemmOf16Bits(const Problem& problem, const Projection& projection, uint32_t row_begin,
                        uint32_t rows, const GemmScratch& scratch) {
  GemmParams params = GemmOf(problem, projection, row_begin, rows);
  params.type = GemmParams::Type::kBf16;
  params.a = scratch.bf16;
  params.a_stride = scratch.cols;
  params.k = scratch.cols;
  return params;
}

// F16 or BF16, read in place.
void EncodeHalves(Stream& stream, DenseGemm& gemm, const Problem& problem,
                  const Projection& projection, const GemmScratch& scratch) {
  const Weight& weight = projection.weight;
  GemmParams params = GemmOf16Bits(problem, projection, 0, weight.rows, scratch);
  params.b = static_cast<const uint16_t*>(weight.data) + 8 * problem.columns().First(8);
  params.b_stride = static_cast<uint32_t>(weight.row_stride_bytes / sizeof(uint16_t));
  if (weight.type != tensor::Type::kF16) return gemm.Encode(stream, params);
  params.type = GemmParams::Type::kF16;
  params.a = scratch.f16;
  gemm.Encode(stream, params);
  EncodeScaleRows(stream, scratch.exponents, params.c, params.m, params.n, params.c_stride);
}

void EncodeQuantised(Stream& stream, DenseGemm& gemm, const Problem& problem,
                     const Projection& projection, const GemmScratch& scratch) {
  const Weight& weight = projection.weight;
  for (uint32_t row = 0; row < weight.rows; row += scratch.tile_rows) {
    const uint32_t rows = std::min(scratch.tile_rows, weight.rows - row);
    GemmParams params = GemmOf16Bits(problem, projection, row, rows, scratch);
    EncodeDequantizeRows(stream, weight, row, rows, problem.columns(), scratch.tile);
    params.b = scratch.tile;
    params.b_stride = scratch.cols;
    gemm.Encode(stream, params);
  }
}

// Rounds the activations to the types that the projections need.
GemmScratch PrepareGemm(Stream& stream, const Problem& problem) {
  bool any_f16 = false, any_bf16 = false;
  uint32_t most_rows = 0;  // over quantised weights
  for (uint32_t i = 0; i < problem.params.num_projections; ++i) {
    any_f16 |= problem.type(i) == tensor::Type::kF16;
    any_bf16 |= problem.type(i) == tensor::Type::kBF16 || !IsPlain(problem.type(i));
    if (IsPlain(problem.type(i))) continue;
    most_rows = std::max(most_rows, problem.projection(i).weight.rows);
  }
  const uint32_t tokens = problem.x.rows, shift = problem.columns().begin % 8;
  GemmScratch scratch{.cols = 8 * problem.columns().Units(8)};
  const size_t row_bytes = sizeof(uint16_t) * scratch.cols;
  const size_t fit = std::max(kTileBytes / row_bytes / kTileRowUnit, size_t{1}) * kTileRowUnit;
  scratch.tile_rows = static_cast<uint32_t>(std::min<size_t>(most_rows, fit));
  const size_t x_bytes = ScratchBytes(row_bytes * tokens);
  const size_t bf16_bytes = any_bf16 ? x_bytes : 0, f16_bytes = any_f16 ? x_bytes : 0;
  const size_t exponent_bytes = any_f16 ? ScratchBytes(sizeof(int32_t) * tokens) : 0;
  std::byte* const memory =
      stream.Scratch(bf16_bytes + f16_bytes + exponent_bytes + row_bytes * scratch.tile_rows);
  if (memory != nullptr) {
    scratch.bf16 = reinterpret_cast<uint16_t*>(memory);
    scratch.f16 = reinterpret_cast<uint16_t*>(memory + bf16_bytes);
    scratch.exponents = reinterpret_cast<int32_t*>(memory + bf16_bytes + f16_bytes);
    scratch.tile = reinterpret_cast<uint16_t*>(memory + bf16_bytes + f16_bytes + exponent_bytes);
  }
  if (any_bf16) {
    EncodeRoundRows(stream, {.x = problem.x.x,
                             .rows = tokens,
                             .outer_stride = problem.x.x_stride,
                             .count = problem.columns().count,
                             .shift = shift,
                             .padded = scratch.cols,
                             .out = scratch.bf16});
  }
  if (any_f16) {
    EncodeHalfRows(stream, {.x = problem.x.x,
                            .rows = tokens,
                            .x_stride = problem.x.x_stride,
                            .count = problem.columns().count,
                            .shift = shift,
                            .padded = scratch.cols,
                            .out = scratch.f16,
                            .exponents = scratch.exponents});
  }
  return scratch;
}

void EncodeManyTokens(Stream& stream, DenseGemm& gemm, const Problem& problem) {
  const GemmScratch scratch = PrepareGemm(stream, problem);
  for (uint32_t i = 0; i < problem.params.num_projections; ++i) {
    const Projection& projection = problem.projection(i);
    if (problem.type(i) == tensor::Type::kF32) {
      EncodeF32(stream, gemm, problem, projection);
    } else if (IsPlain(problem.type(i))) {
      EncodeHalves(stream, gemm, problem, projection, scratch);
    } else {
      EncodeQuantised(stream, gemm, problem, projection, scratch);
    }
    if (projection.bias == nullptr) continue;
    EncodeAddBias(stream, projection.bias, projection.y, problem.x.rows, projection.weight.rows,
                  projection.y_stride);
  }
}

}  // namespace

void EncodeOp(Stream& stream, DenseGemm& gemm, const MatMulAddParams& params) {
  TANDEM_CHECK(params.product.num_projections == 1) << params.product.num_projections;
  const Projection& projection = params.product.projections[0];
  TANDEM_CHECK(params.add.x == projection.y && params.add.dim == projection.weight.rows &&
               params.add.dim == projection.y_stride && params.add.rows == params.product.tokens)
      << "rows other than the product's are added";
  if (params.product.tokens == 0) return;
  if (params.product.tokens <= kMaxMatVecTokens && params.add.scale == 1.0f) {
    Problem problem = ProblemOf(params.product);
    problem.add = &params.add;
    EncodeFewTokens(stream, problem);
  } else {
    EncodeOp(stream, gemm, params.product);
    EncodeOp(stream, params.add);
  }
}

void EncodeOp(Stream& stream, DenseGemm& gemm, const MatMulParams& params) {
  if (params.tokens == 0 || params.num_projections == 0) return;
  const Problem problem = ProblemOf(params);
  if (params.tokens <= kMaxMatVecTokens) {
    EncodeFewTokens(stream, problem);
  } else {
    EncodeManyTokens(stream, gemm, problem);
  }
}

}  // namespace tandem::kernels::cuda
