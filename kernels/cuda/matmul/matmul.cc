// MatMul: few tokens use GEMV kernels that read the quantised weights; many use dense GEMM
// (cuBLASLt) on BF16 copies of the weights, dequantised a tile at a time.
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

// Activations in BF16, and scratch for a tile of a weight.
struct Bf16Scratch {
  uint16_t* x = nullptr;
  uint16_t* tile = nullptr;
  uint32_t cols = 0;
  uint32_t tile_rows = 0;
};

void EncodeBf16(Stream& stream, DenseGemm& gemm, const Problem& problem,
                const Projection& projection, const Bf16Scratch& scratch) {
  const Weight& weight = projection.weight;
  const bool direct = weight.type == tensor::Type::kBF16;
  const uint32_t most = direct ? weight.rows : scratch.tile_rows;
  for (uint32_t row = 0; row < weight.rows; row += most) {
    const uint32_t rows = std::min(most, weight.rows - row);
    GemmParams params = GemmOf(problem, projection, row, rows);
    params.type = GemmParams::Type::kBf16;
    params.a = scratch.x;
    params.a_stride = scratch.cols;
    params.k = scratch.cols;
    if (direct) {
      params.b = static_cast<const uint16_t*>(weight.data) + 8 * problem.columns().First(8);
      params.b_stride = static_cast<uint32_t>(weight.row_stride_bytes / sizeof(uint16_t));
    } else {
      EncodeDequantizeRows(stream, weight, row, rows, problem.columns(), scratch.tile);
      params.b = scratch.tile;
      params.b_stride = scratch.cols;
    }
    gemm.Encode(stream, params);
  }
}

Bf16Scratch TakeBf16Scratch(Stream& stream, const Problem& problem) {
  Bf16Scratch scratch;
  bool any = false;
  uint32_t most_rows = 0;  // over weights that are not BF16
  for (uint32_t i = 0; i < problem.params.num_projections; ++i) {
    if (problem.type(i) == tensor::Type::kF32) continue;
    any = true;
    if (problem.type(i) == tensor::Type::kBF16) continue;
    most_rows = std::max(most_rows, problem.projection(i).weight.rows);
  }
  if (!any) return scratch;
  scratch.cols = 8 * problem.columns().Units(8);
  const size_t row_bytes = sizeof(uint16_t) * scratch.cols;
  const size_t fit = std::max(kTileBytes / row_bytes / kTileRowUnit, size_t{1}) * kTileRowUnit;
  scratch.tile_rows = static_cast<uint32_t>(std::min<size_t>(most_rows, fit));
  const size_t x_bytes = ScratchBytes(row_bytes * problem.x.rows);
  std::byte* const memory = stream.Scratch(x_bytes + row_bytes * scratch.tile_rows);
  if (memory == nullptr) return scratch;
  scratch.x = reinterpret_cast<uint16_t*>(memory);
  scratch.tile = reinterpret_cast<uint16_t*>(memory + x_bytes);
  EncodeRoundRows(stream, {.x = problem.x.x,
                           .rows = problem.x.rows,
                           .outer_stride = problem.x.x_stride,
                           .count = problem.columns().count,
                           .shift = problem.columns().begin % 8,
                           .padded = scratch.cols,
                           .out = scratch.x});
  return scratch;
}

void EncodeManyTokens(Stream& stream, DenseGemm& gemm, const Problem& problem) {
  const Bf16Scratch scratch = TakeBf16Scratch(stream, problem);
  for (uint32_t i = 0; i < problem.params.num_projections; ++i) {
    const Projection& projection = problem.projection(i);
    if (problem.type(i) == tensor::Type::kF32) {
      EncodeF32(stream, gemm, problem, projection);
    } else {
      EncodeBf16(stream, gemm, problem, projection, scratch);
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
  if (params.product.tokens <= kMaxMatVecTokens) {
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
