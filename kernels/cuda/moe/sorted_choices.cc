// Block-quantised weights: pieces of a few choices are multiplied by the grouped GEMV, larger ones
// in tiles on tensor cores, both in bytes and with the same bits; of many tokens, all in tiles in
// BF16. F16 and BF16: all in those. F32 weights: all by the GEMV.
//
// Products of "down" go to device memory, in slices of as many rows as the L2 cache holds.
#include "kernels/cuda/moe/sorted_choices.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/cuda/device/blocks_dispatch.h"
#include "kernels/cuda/matmul/round_rows.h"
#include "kernels/cuda/moe/block_gemm.h"
#include "kernels/cuda/moe/expert_groups.h"
#include "kernels/cuda/moe/expert_matmul.h"
#include "kernels/cuda/moe/grouped_gemm.h"
#include "kernels/cuda/moe/grouped_gemv.h"
#include "kernels/cuda/moe/sum_choices.h"

namespace tandem::kernels::cuda {
namespace {

constexpr size_t kSliceBytes = size_t{32} << 20;
constexpr uint32_t kSliceRowUnit = 64;

static_assert(std::min({kFewTokens, GemmTileSize(0), GroupedGemmSize(0)}) >= kSmallestPiece);

tensor::Type TypeOf(const ExpertMatMulParams& params) { return params.projections[0].weight.type; }

// How weights and inputs are multiplied.
bool InFloats(const ExpertMatMulParams& params) { return TypeOf(params) == tensor::Type::kF32; }
bool InBytes(const ExpertMatMulParams& params) {
  return !IsPlain(TypeOf(params)) && params.tokens <= kMaxBlockGemmTokens;
}
bool InBf16(const ExpertMatMulParams& params) { return !InFloats(params) && !InBytes(params); }

ChoiceGroups GroupsFor(const ExpertMatMulParams& params) {
  const uint32_t of_expert = Blocks(params.tokens * params.top_k, params.num_experts);
  if (InFloats(params)) return {params, kFewTokens, kFewTokens};
  if (InBf16(params)) return {params, GroupedGemmSize(of_expert), 0};
  return {params, GemmTileSize(of_expert), kMostGemvChoices};
}

// What the kernels of a call share.
struct Sorted {
  ChoiceGroups groups;
  ColumnWindow window;
  Int8Group* bytes = nullptr;  // (rows of x, groups of the window): InBytes
  uint16_t* bf16 = nullptr;    // (rows of x, window.padded): InBf16
  float* products = nullptr;   // (choices, slice_rows): down
  uint32_t slice_rows = 0;
};

Sorted AllocateScratch(Stream& stream, const ExpertMatMulParams& params) {
  const Weight& weight = params.projections[0].weight;
  Sorted sorted = {.groups = GroupsFor(params), .window = ColumnWindow(weight)};
  const size_t product_row = sizeof(float) * sorted.groups.choices;
  const size_t fit = std::max(kSliceBytes / product_row / kSliceRowUnit, size_t{1}) * kSliceRowUnit;
  sorted.slice_rows = static_cast<uint32_t>(std::min<size_t>(weight.rows, fit));
  // Not what the slice takes, which grows and shrinks with the choices: no step may need more
  // than the largest one, which is all that a plan pass encodes.
  const size_t slice_bytes =
      std::min(product_row * weight.rows, std::max(kSliceBytes, product_row * kSliceRowUnit));
  size_t total = 0;
  const auto place = [&](bool needed, size_t bytes) {
    return std::exchange(total, total + (needed ? ScratchBytes(bytes) : 0));
  };
  const size_t inputs = InputsOf(params).rows;
  const size_t groups = place(true, sorted.groups.ScratchSize());
  const size_t bytes =
      place(InBytes(params), inputs * (sorted.window.padded / 32) * sizeof(Int8Group));
  const size_t bf16 = place(InBf16(params), inputs * sorted.window.padded * sizeof(uint16_t));
  const size_t products = place(params.weights != nullptr, slice_bytes);
  std::byte* const memory = stream.Scratch(total);
  if (memory == nullptr) return sorted;  // a plan pass, which launches nothing
  sorted.groups.SetScratch(memory + groups);
  sorted.bytes = reinterpret_cast<Int8Group*>(memory + bytes);
  sorted.bf16 = reinterpret_cast<uint16_t*>(memory + bf16);
  sorted.products = reinterpret_cast<float*>(memory + products);
  return sorted;
}

// Sorts the choices and converts the inputs.
Sorted Prepare(Stream& stream, const ExpertMatMulParams& params) {
  const Sorted sorted = AllocateScratch(stream, params);
  EncodeChoiceGroups(stream, params, sorted.groups);
  const RowsOfX x = InputsOf(params);
  if (InBytes(params)) {
    EncodeQuantizeRows(stream, x, sorted.bytes);
  } else if (InBf16(params)) {
    EncodeRoundRows(stream, {.x = x.x,
                             .rows = x.rows,
                             .outer_stride = x.x_stride,
                             .count = x.columns.count,
                             .shift = sorted.window.begin - sorted.window.first,
                             .padded = sorted.window.padded,
                             .out = sorted.bf16});
  }
  return sorted;
}

MatVecParts PartsOf(const ExpertMatMulParams& params) {
  MatVecParts parts;
  for (; parts.count < params.num_projections; ++parts.count) {
    const ExpertProjection& projection = params.projections[parts.count];
    const Weight& weight = projection.weight;
    parts.part[parts.count] = {.weight = static_cast<const std::byte*>(weight.data),
                               .row_stride_bytes = weight.row_stride_bytes,
                               .bias = projection.bias,
                               .y = projection.y,
                               .rows = weight.rows,
                               .y_stride = weight.rows,
                               .matrix_stride_bytes = weight.matrix_stride_bytes,
                               .bias_stride = projection.bias_stride};
  }
  return parts;
}

// A product per choice, to y of the projections.
void EncodeProducts(Stream& stream, const ExpertMatMulParams& params, const Sorted& sorted) {
  const RowPieces small = sorted.groups.Small(), large = sorted.groups.Large();
  if (small.most > 0) {
    EncodeGroupedGemvUp(stream, {params, sorted.window, sorted.bytes, small});
  }
  if (large.most == 0) return;
  if (InBf16(params)) {
    EncodeGroupedGemm(stream, {params, sorted.window, large, sorted.bf16});
  } else {
    EncodeBlockGemm(stream, TypeOf(params), PartsOf(params),
                    {sorted.bytes, sorted.window.padded / 32}, large, InputsOf(params).columns);
  }
}

// The products of a slice of rows, as those of a projection with these rows alone.
ExpertMatMulParams ProductsOf(const ExpertMatMulParams& params, const SliceOfProducts& slice) {
  ExpertMatMulParams part = params;
  ExpertProjection& projection = part.projections[0];
  projection.weight.data = static_cast<const std::byte*>(projection.weight.data) +
                           slice.row * projection.weight.row_stride_bytes;
  projection.weight.rows = slice.rows;
  if (projection.bias != nullptr) projection.bias += slice.row;
  projection.y = slice.products;
  return part;
}

}  // namespace

void EncodeSortedChoices(Stream& stream, const ExpertMatMulParams& params) {
  const Sorted sorted = Prepare(stream, params);
  if (params.weights == nullptr) return EncodeProducts(stream, params, sorted);
  const uint32_t rows = params.projections[0].weight.rows;
  for (uint32_t row = 0; row < rows; row += sorted.slice_rows) {
    const SliceOfProducts slice = {row, std::min(sorted.slice_rows, rows - row), sorted.products};
    EncodeProducts(stream, ProductsOf(params, slice), sorted);
    EncodeSumChoices(stream, params, slice);
  }
}

}  // namespace tandem::kernels::cuda
