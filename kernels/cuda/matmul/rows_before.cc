#include "kernels/cuda/matmul/rows_before.h"

#include "common/base/check.h"
#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/matmul/activations.h"
#include "kernels/cuda/matmul/block_product.h"
#include "kernels/cuda/matmul/gate_up.h"
#include "kernels/cuda/matmul/matmul.h"
#include "kernels/cuda/matmul/round_rows.h"
#include "kernels/cuda/norm/norm.h"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/rows/activate.h"
#include "kernels/cuda/rows/activate_to_bytes.h"

namespace tandem::kernels::cuda {
namespace {

// The forms that are wanted, but for those that the op before has left.
void EncodeRounding(Stream& stream, const RowsToWrite& to, bool has_bytes = false,
                    bool has_bf16 = false) {
  if (to.bytes && !has_bytes) EncodeQuantizeRows(stream, to.x, to.groups);
  if (!to.rounded || has_bf16) return;
  EncodeRoundRows(stream, {.x = to.x.x,
                           .rows = to.x.rows,
                           .outer_stride = to.x.x_stride,
                           .count = to.x.columns.count,
                           .shift = to.x.columns.begin % 32,
                           .padded = to.bf16.stride,
                           .out = to.bf16.out});
}

// Whether BF16 rows are wanted that have nothing but the rows' values: their stride has room for
// what is before the first value in its group of 32 columns, and behind the last.
bool WantsWholeBf16(const RowsToWrite& to) {
  return to.rounded && to.x.columns.count == to.bf16.stride;
}
// Whether groups are wanted of which the first begins with the row's first value.
bool WantsWholeGroups(const RowsToWrite& to) { return to.bytes && to.x.columns.begin % 32 == 0; }

// Whether one of these is all that is wanted.
bool WantsOneForm(const RowsToWrite& to) {
  if (to.floats || to.bytes == to.rounded) return false;
  return WantsWholeGroups(to) || WantsWholeBf16(to);
}

uint32_t StrideOf(const RmsNormParams& norm) {
  return norm.out_stride == 0 ? norm.dim : norm.out_stride;
}
uint32_t StrideOf(const LayerNormParams& norm) { return norm.dim; }

void Encode(Stream& stream, const std::monostate&, const RowsToWrite& to) {
  EncodeRounding(stream, to);
}

template <typename Norm>
void Encode(Stream& stream, const Norm& norm, const RowsToWrite& to) {
  const RowsOfX& x = to.x;
  TANDEM_CHECK(norm.out == x.x && norm.rows == x.rows && norm.dim == x.columns.count &&
               StrideOf(norm) == x.x_stride)
      << "rows other than the norm's are multiplied";
  const bool bytes = WantsWholeGroups(to) && NormInRegisters(norm.dim);
  const bool bf16 = WantsWholeBf16(to);
  Norm one = norm;
  if (!to.floats && bytes == to.bytes && bf16 == to.rounded) one.out = nullptr;
  EncodeNorm(stream, one, {bytes ? to.groups : nullptr, bf16 ? to.bf16 : Bf16Rows()});
  EncodeRounding(stream, to, bytes, bf16);
}

void CheckActivated(const ActivateParams& activate, const RowsOfX& x) {
  TANDEM_CHECK(activate.out == x.x && activate.rows == x.rows && activate.cols == x.columns.count &&
               activate.cols == x.x_stride)
      << "rows other than the activated ones are multiplied";
}

void Encode(Stream& stream, const ActivateParams& activate, const RowsToWrite& to) {
  CheckActivated(activate, to.x);
  if (to.bytes && !to.floats && !to.rounded) {
    return EncodeActivateToBytes(stream, activate, to.x.columns, to.groups);
  }
  const bool bf16 = WantsWholeBf16(to);
  ActivateParams one = activate;
  if (!to.floats && !to.bytes && bf16) one.out = nullptr;
  EncodeActivate(stream, one, bf16 ? to.bf16 : Bf16Rows());
  EncodeRounding(stream, to, /*has_bytes=*/false, bf16);
}

void Encode(Stream& stream, const AttentionParams& attention, const RowsToWrite& to) {
  const RowsOfX& x = to.x;
  TANDEM_CHECK(attention.out == x.x && attention.tokens == x.rows &&
               attention.heads * attention.pages.value_dim == x.columns.count &&
               x.columns.count == x.x_stride)
      << "rows other than attention's are multiplied";
  const RoundedAttention rounded = {to.bytes, to.groups, to.bf16};
  // Many rows are rounded faster by a kernel that shares them evenly than by the merge.
  const bool few = x.rows <= kMaxBlockProductTokens;
  if (few && WantsOneForm(to) && AttentionRounds(attention, rounded)) {
    EncodeAttention(stream, attention, rounded);
  } else {
    EncodeOp(stream, attention);
    EncodeRounding(stream, to);
  }
}

void Encode(Stream& stream, const HiddenRows& hidden, const RowsToWrite& to) {
  const FeedForwardParams& block = hidden.block;
  if (WantsOneForm(to) && TakesGateUp(block.up, block.activate)) {
    CheckActivated(block.activate, to.x);
    const Activations x = EncodeActivations(stream, RowsOfNorm(block.norm), block.up);
    if (to.bytes) {
      EncodeGateUpMatVec(stream, block.up, block.activate, x.groups, to.groups);
    } else {
      EncodeGateUp(stream, block.up, block.activate, InputsOf(x, RowsOf(block.up)), to.bf16);
    }
  } else {
    EncodeProduct(stream, hidden.gemm, RowsOfNorm(block.norm), block.up);
    Encode(stream, block.activate, to);
  }
}

}  // namespace

RowsBefore RowsOfNorm(const NormParams& norm) {
  return std::visit([](const auto& op) { return RowsBefore(op); }, norm);
}

void EncodeBefore(Stream& stream, const RowsBefore& before, const RowsToWrite& to) {
  std::visit([&](const auto& op) { Encode(stream, op, to); }, before);
}

}  // namespace tandem::kernels::cuda
