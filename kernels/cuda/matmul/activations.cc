#include "kernels/cuda/matmul/activations.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "common/base/check.h"
#include "kernels/cuda/device/blocks_dispatch.h"
#include "kernels/cuda/matmul/block_product.h"
#include "kernels/cuda/matmul/gemv.h"
#include "kernels/cuda/matmul/half_rows.h"

namespace tandem::kernels::cuda {
namespace {

// A dequantised tile stays in the L2 cache (40 MB on A100, 50 MB on H100 and H200) until it is
// used.
constexpr size_t kTileBytes = size_t{32} << 20;
constexpr uint32_t kTileRowUnit = 128;

// Which forms of the activations a product needs.
struct Forms {
  bool floats = false;  // as they are, or to be rounded to F16
  bool bytes = false;
  bool bf16 = false;
  bool f16 = false;
  uint32_t most_rows = 0;  // of the weights that are dequantised
};

Forms FormsOf(const MatMulParams& params) {
  Forms forms;
  for (uint32_t i = 0; i < params.num_projections; ++i) {
    const Weight& weight = params.projections[i].weight;
    const bool plain = IsPlain(weight.type), dense = IsDense(weight.type, params.tokens);
    forms.floats |= plain && !(dense && weight.type == tensor::Type::kBF16);
    forms.bytes |= !plain && params.tokens == 1;
    forms.bf16 |= plain ? dense && weight.type == tensor::Type::kBF16 : params.tokens > 1;
    if (!dense) continue;
    forms.f16 |= weight.type == tensor::Type::kF16;
    if (!plain) forms.most_rows = std::max(forms.most_rows, weight.rows);
  }
  return forms;
}

static_assert(sizeof(Int8Group) <= 32 * sizeof(uint16_t));
size_t RowBytes(ColumnRange columns) { return sizeof(uint16_t) * 32 * columns.Units(32); }

// Scratch that the op before a product must not use: the product's rounded rows, which that op may
// write while its own scratch is in use. At least what any smaller step needs, since a plan pass
// encodes the largest one alone.
size_t KeptBytes(const RowsOfX& x, const MatMulParams& params) {
  for (uint32_t i = 0; i < params.num_projections; ++i) {
    const tensor::Type type = params.projections[i].weight.type;
    if (type != tensor::Type::kF32 && type != tensor::Type::kF16)
      return RowBytes(x.columns) * std::min(x.rows, kMaxBlockProductTokens);
  }
  return 0;
}

Activations Allocate(Stream& stream, const RowsOfX& x, const Forms& forms) {
  Activations made{.cols = 32 * x.columns.Units(32)};
  const size_t row_bytes = RowBytes(x.columns);
  const size_t tile_row_bytes = sizeof(uint16_t) * 8 * x.columns.Units(8);
  const size_t fit = std::max(kTileBytes / tile_row_bytes / kTileRowUnit, size_t{1}) * kTileRowUnit;
  made.tile_rows = static_cast<uint32_t>(std::min<size_t>(forms.most_rows, fit));
  size_t total = 0;
  const auto place = [&](bool needed, size_t bytes) {
    return std::exchange(total, total + (needed ? ScratchBytes(bytes) : 0));
  };
  // First: KeptBytes. One or the other.
  const size_t groups = place(forms.bytes, sizeof(Int8Group) * x.columns.Units(32));
  const size_t bf16 = place(forms.bf16, row_bytes * x.rows);
  const size_t f16 = place(forms.f16, row_bytes * x.rows);
  const size_t exponents = place(forms.f16, sizeof(int32_t) * x.rows);
  const size_t tile = place(made.tile_rows > 0, tile_row_bytes * made.tile_rows);
  std::byte* const memory = stream.Scratch(total);
  if (memory == nullptr) return made;
  made.groups = reinterpret_cast<Int8Group*>(memory + groups);
  made.bf16 = reinterpret_cast<uint16_t*>(memory + bf16);
  made.f16 = reinterpret_cast<uint16_t*>(memory + f16);
  made.exponents = reinterpret_cast<int32_t*>(memory + exponents);
  made.tile = reinterpret_cast<uint16_t*>(memory + tile);
  return made;
}

void EncodeF16(Stream& stream, const RowsOfX& x, const Activations& to) {
  EncodeHalfRows(stream, {.x = x.x,
                          .rows = x.rows,
                          .x_stride = x.x_stride,
                          .count = x.columns.count,
                          .shift = x.columns.begin % 32,
                          .padded = to.cols,
                          .out = to.f16,
                          .exponents = to.exponents});
}

}  // namespace

bool IsDense(tensor::Type type, uint32_t tokens) {
  return tokens > (IsPlain(type) ? MaxPlainMatVecTokens(type) : kMaxBlockProductTokens);
}

RowsOfX RowsOf(const MatMulParams& params) {
  const Weight& weight = params.projections[0].weight;
  TANDEM_CHECK(weight.col_count > 0) << "a product over no columns";
  return {params.x, params.tokens, params.x_stride, {weight.col_begin, weight.col_count}};
}

Bf16Inputs InputsOf(const Activations& activations, const RowsOfX& x) {
  return {activations.bf16, activations.cols, x.rows, {x.columns.First(32), x.columns.Units(32)}};
}

Activations EncodeActivations(Stream& stream, const RowsBefore& before,
                              const MatMulParams& params) {
  const RowsOfX x = RowsOf(params);
  const Forms forms = FormsOf(params);
  const Activations to = Allocate(stream, x, forms);
  {
    const Stream::KeptScratch kept(stream, KeptBytes(x, params));
    EncodeBefore(stream, before,
                 {.x = x,
                  .floats = forms.floats,
                  .bytes = forms.bytes,
                  .rounded = forms.bf16,
                  .groups = to.groups,
                  .bf16 = {to.bf16, to.cols}});
  }
  if (forms.f16) EncodeF16(stream, x, to);
  return to;
}

}  // namespace tandem::kernels::cuda
