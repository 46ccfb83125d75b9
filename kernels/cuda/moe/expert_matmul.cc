#include "kernels/cuda/moe/expert_matmul.h"

#include <cstddef>

#include "kernels/cuda/device/blocks_dispatch.h"
#include "kernels/cuda/matmul/column_window.h"
#include "kernels/cuda/moe/grouped_gemv.h"
#include "kernels/cuda/moe/sorted_choices.h"
#include "kernels/cuda/rows/quantize_rows.h"

namespace tandem::kernels::cuda {
namespace {

bool Alike(const ExpertProjection& a, const ExpertProjection& b) {
  return a.weight.type == b.weight.type && a.weight.rows == b.weight.rows &&
         a.weight.cols == b.weight.cols && ColumnWindow(a.weight) == ColumnWindow(b.weight);
}

void EncodeFew(Stream& stream, const ExpertMatMulParams& params) {
  const Weight& weight = params.projections[0].weight;
  const ColumnWindow window(weight);
  const RowsOfX x = InputsOf(params);
  Int8Group* bytes = nullptr;
  if (!IsPlain(weight.type)) {
    bytes = reinterpret_cast<Int8Group*>(
        stream.Scratch(size_t{x.rows} * x.columns.Units(32) * sizeof(Int8Group)));
    EncodeQuantizeRows(stream, x, bytes);
  }
  const GroupedGemvArgs args = {params, window, bytes, {}};
  (params.weights != nullptr ? EncodeGroupedGemvDown : EncodeGroupedGemvUp)(stream, args);
}

// All projections have the same type, shape and window.
void EncodeAlike(Stream& stream, const ExpertMatMulParams& params) {
  (params.tokens <= kFewTokens ? EncodeFew : EncodeSortedChoices)(stream, params);
}

}  // namespace

void EncodeOp(Stream& stream, const ExpertMatMulParams& params) {
  if (params.tokens == 0) return;
  if (params.num_projections == 1 || Alike(params.projections[0], params.projections[1])) {
    EncodeAlike(stream, params);
    return;
  }
  for (uint32_t i = 0; i < params.num_projections; ++i) {
    ExpertMatMulParams one = params;
    one.num_projections = 1;
    one.projections[0] = params.projections[i];
    EncodeAlike(stream, one);
  }
}

}  // namespace tandem::kernels::cuda
