// MatMul: quantised weights are multiplied in bytes, by a GEMV (few tokens) or in tiles on tensor
// cores; plain ones in floats by a GEMV, or for more tokens by dense GEMM (cuBLASLt). Very many
// tokens use dense GEMM on BF16 copies of quantised weights too, dequantised a tile at a time.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "common/base/check.h"
#include "common/tensor/type.h"
#include "kernels/cuda/dense_gemm.h"
#include "kernels/cuda/device/blocks_dispatch.h"
#include "kernels/cuda/device/int8_group.h"
#include "kernels/cuda/matmul/add_bias.h"
#include "kernels/cuda/matmul/dequantize_rows.h"
#include "kernels/cuda/matmul/gemm.h"
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

// Up to here a row's bits depend only on the row, whatever the number of tokens. The tiles' work
// grows with the tokens, that of dequantising does not; by the counts of docs/cuda-kernels.md they
// meet near this.
constexpr uint32_t kMaxBlockGemmTokens = 256;

// Whether cuBLASLt multiplies such weights.
bool IsDense(tensor::Type type, uint32_t tokens) {
  return tokens > (IsPlain(type) ? kMaxPlainMatVecTokens : kMaxBlockGemmTokens);
}

struct Problem {
  RowsOfX x;
  const MatMulParams& params;
  const AddRowsParams* add = nullptr;  // what follows a product that is not dense

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

// Activations in the forms that the projections need, and a tile of a weight. Null in a plan pass.
struct Scratch {
  Int8Group* groups = nullptr;   // for products in bytes, as gemv.h and gemm.h want them
  uint32_t cols = 0;             // of all rows of 16-bit values here
  uint32_t tile_rows = 0;        // 0: no weight is dequantised
  uint16_t* bf16 = nullptr;      // (tokens, cols), for dense BF16 and quantised weights
  uint16_t* f16 = nullptr;       // (tokens, cols), for dense F16 weights
  int32_t* exponents = nullptr;  // (tokens), of f16
  uint16_t* tile = nullptr;      // (tile_rows, cols)
};

// --- GEMV and tiles: the weight is read as it is ---

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

// The products of all projections with the type of projection i.
void EncodeInPlace(Stream& stream, const Problem& problem, uint32_t i, const Scratch& scratch) {
  const MatVecParts parts = PartsOfType(problem, i);
  if (parts.count == 0) return;
  const uint32_t tokens = problem.x.rows;
  if (IsPlain(problem.type(i))) {
    EncodePlainMatVec(stream, problem.type(i), parts, problem.x);
  } else if (tokens <= kMaxBlockMatVecTokens) {
    EncodeBlockMatVec(stream, problem.type(i), parts, scratch.groups, tokens, problem.columns());
  } else {
    EncodeBlockGemm(stream, problem.type(i), parts, {scratch.groups, {1, tokens}},
                    RowsInOrder(tokens, GemmTileSize(tokens)), problem.columns());
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

GemmParams GemmOf16Bits(const Problem& problem, const Projection& projection, uint32_t row_begin,
                        uint32_t rows, const Scratch& scratch) {
  GemmParams params = GemmOf(problem, projection, row_begin, rows);
  params.type = GemmParams::Type::kBf16;
  params.a = scratch.bf16;
  params.a_stride = scratch.cols;
  params.k = scratch.cols;
  return params;
}

// F16 or BF16, read in place.
void EncodeHalves(Stream& stream, DenseGemm& gemm, const Problem& problem,
                  const Projection& projection, const Scratch& scratch) {
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
                     const Projection& projection, const Scratch& scratch) {
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

void EncodeDense(Stream& stream, DenseGemm& gemm, const Problem& problem,
                 const Projection& projection, const Scratch& scratch) {
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

// --- what both need ---

// Which forms of the activations a problem needs.
struct Forms {
  bool bytes = false;
  bool bf16 = false;
  bool f16 = false;
  uint32_t most_rows = 0;  // of the weights that are dequantised
};

Forms FormsOf(const Problem& problem) {
  Forms forms;
  for (uint32_t i = 0; i < problem.params.num_projections; ++i) {
    const tensor::Type type = problem.type(i);
    if (!IsDense(type, problem.x.rows)) {
      forms.bytes |= !IsPlain(type);
      continue;
    }
    forms.f16 |= type == tensor::Type::kF16;
    forms.bf16 |= type == tensor::Type::kBF16 || !IsPlain(type);
    if (!IsPlain(type))
      forms.most_rows = std::max(forms.most_rows, problem.projection(i).weight.rows);
  }
  return forms;
}

Scratch AllocateScratch(Stream& stream, const Problem& problem, const Forms& forms) {
  const uint32_t tokens = problem.x.rows;
  Scratch scratch{.cols = 8 * problem.columns().Units(8)};
  const size_t row_bytes = sizeof(uint16_t) * scratch.cols;
  const size_t fit = std::max(kTileBytes / row_bytes / kTileRowUnit, size_t{1}) * kTileRowUnit;
  scratch.tile_rows = static_cast<uint32_t>(std::min<size_t>(forms.most_rows, fit));
  size_t total = 0;
  const auto place = [&](bool needed, size_t bytes) {
    return std::exchange(total, total + (needed ? ScratchBytes(bytes) : 0));
  };
  const size_t groups =
      place(forms.bytes, sizeof(Int8Group) * tokens * problem.columns().Units(32));
  const size_t bf16 = place(forms.bf16, row_bytes * tokens);
  const size_t f16 = place(forms.f16, row_bytes * tokens);
  const size_t exponents = place(forms.f16, sizeof(int32_t) * tokens);
  const size_t tile = place(scratch.tile_rows > 0, row_bytes * scratch.tile_rows);
  std::byte* const memory = stream.Scratch(total);
  if (memory == nullptr) return scratch;
  scratch.groups = reinterpret_cast<Int8Group*>(memory + groups);
  scratch.bf16 = reinterpret_cast<uint16_t*>(memory + bf16);
  scratch.f16 = reinterpret_cast<uint16_t*>(memory + f16);
  scratch.exponents = reinterpret_cast<int32_t*>(memory + exponents);
  scratch.tile = reinterpret_cast<uint16_t*>(memory + tile);
  return scratch;
}

// The activations in the forms that the projections need.
Scratch PrepareActivations(Stream& stream, const Problem& problem) {
  const Forms forms = FormsOf(problem);
  const Scratch scratch = AllocateScratch(stream, problem, forms);
  const uint32_t tokens = problem.x.rows, shift = problem.columns().begin % 8;
  if (forms.bytes && tokens <= kMaxBlockMatVecTokens) {
    EncodeQuantizeRows(stream, problem.x, scratch.groups);
  } else if (forms.bytes) {
    EncodeQuantizeRows(stream, problem.x, {1, tokens}, scratch.groups);
  }
  if (forms.bf16) {
    EncodeRoundRows(stream, {.x = problem.x.x,
                             .rows = tokens,
                             .outer_stride = problem.x.x_stride,
                             .count = problem.columns().count,
                             .shift = shift,
                             .padded = scratch.cols,
                             .out = scratch.bf16});
  }
  if (forms.f16) {
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

void EncodeProblem(Stream& stream, DenseGemm& gemm, const Problem& problem) {
  const Scratch scratch = PrepareActivations(stream, problem);
  for (uint32_t i = 0; i < problem.params.num_projections; ++i) {
    if (IsDense(problem.type(i), problem.x.rows)) {
      EncodeDense(stream, gemm, problem, problem.projection(i), scratch);
    } else {
      EncodeInPlace(stream, problem, i, scratch);
    }
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
  if (!IsDense(projection.weight.type, params.product.tokens) && params.add.scale == 1.0f) {
    Problem problem = ProblemOf(params.product);
    problem.add = &params.add;
    EncodeProblem(stream, gemm, problem);
  } else {
    EncodeOp(stream, gemm, params.product);
    EncodeOp(stream, params.add);
  }
}

void EncodeOp(Stream& stream, DenseGemm& gemm, const MatMulParams& params) {
  if (params.tokens == 0 || params.num_projections == 0) return;
  EncodeProblem(stream, gemm, ProblemOf(params));
}

}  // namespace tandem::kernels::cuda
