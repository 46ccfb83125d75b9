#include "kernels/cpu/matmul/conversion.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/tensor/type.h"
#include "kernels/cpu/matmul/bf16_pairs.h"
#include "kernels/cpu/matmul/dispatch.h"
#include "kernels/cpu/matmul/quantize.h"

namespace tandem::kernels::cpu {
namespace {

// Tokens whose activations one task converts.
constexpr uint32_t kConvertTokens = 4;

struct ConvertTask {
  NormBefore norm;
  Conversion conversion;
  uint32_t tokens_per_task;
};

void RunConvert(const ConvertTask& task, const host::TaskContext& context) {
  if (task.norm.run != nullptr) task.norm.run(task.norm.task, context);
  const Conversion& c = task.conversion;
  const uint32_t begin = context.task * task.tokens_per_task;
  const uint32_t end = std::min(begin + task.tokens_per_task, c.tokens);
  Convert(c.x + begin * c.x_stride, c.x_stride, c, {begin, end, 0, c.count},
          context.shared_scratch);
}

// Whether any projection's kernel reads activations in that form.
bool AnyReads(const MatMulParams& params, const MatMulKernels& kernels, Activations form) {
  for (uint32_t i = 0; i < params.num_projections; ++i) {
    const Weight& weight = params.projections[i].weight;
    const Kernel* const kernel = FindKernel(kernels, weight.type);
    TANDEM_CHECK(kernel != nullptr) << tensor::Name(weight.type);
    if (kernel->activations == form) return true;
  }
  return false;
}

// Blocks of a row that the range's values and the zeros beside them fill.
void QuantizePart(const Conversion& c, const float* x, const ConversionRange& range,
                  QuantBlock* row, Quantizer* quantizer) {
  constexpr uint32_t kValues = QuantBlock::kValues;
  const bool last = range.col + range.count == c.count;
  const uint32_t first_block = range.col == 0 ? 0 : (c.lead + range.col) / kValues;
  const uint32_t lead = range.col == 0 ? c.lead : 0;
  const uint32_t end_block = last ? c.blocks : (c.lead + range.col + range.count) / kValues;
  quantizer->AddRow(x, range.count, lead, end_block - first_block, row + first_block);
}

}  // namespace

Conversion MakeConversion(const MatMulParams& params, const MatMulKernels& kernels,
                          const Window& all, size_t at) {
  const Weight& any = params.projections[0].weight;
  Conversion c = {};
  c.x = params.x;
  c.x_stride = params.x_stride;
  c.tokens = params.tokens;
  c.count = any.col_count;
  c.blocks = QuantBlocks(all);
  c.lead = c.blocks > 0 ? any.col_begin - all.begin : 0;
  if (AnyReads(params, kernels, Activations::kBf16Pairs)) c.pairs = Bf16Pairs(any.col_count);
  c.at = at;
  return c;
}

void Convert(const float* x, size_t x_stride, const Conversion& c, const ConversionRange& range,
             std::byte* shared) {
  auto* const blocks = reinterpret_cast<QuantBlock*>(shared + c.at);
  auto* const pairs = reinterpret_cast<uint32_t*>(shared + c.pairs_at());
  Quantizer quantizer;
  for (size_t t = range.begin; t < range.end; ++t, x += x_stride) {
    if (c.blocks > 0) QuantizePart(c, x, range, blocks + t * QuantRowStride(c.blocks), &quantizer);
    if (c.pairs > 0) RoundToBf16Pairs(x, range.count, pairs + t * c.pairs + range.col / 2);
  }
}

void EncodeConversion(host::OpList& list, const Conversion& conversion, const NormBefore& norm) {
  const bool norms = norm.run != nullptr;
  if (!norms && !conversion.needed()) return;
  const RmsNormParams& p = norm.task.params;
  TANDEM_CHECK(!norms || (p.out == conversion.x && p.rows == conversion.tokens))
      << p.rows << " rows, " << conversion.tokens << " tokens";
  const ConvertTask task = {norm, conversion, norms ? norm.task.rows_per_task : kConvertTokens};
  list.ReserveScratch(conversion.end(), 0);
  list.Add(norms ? "rms_norm, convert" : "convert",
           CeilDiv(conversion.tokens, task.tokens_per_task), &RunConvert, task);
}

}  // namespace tandem::kernels::cpu
