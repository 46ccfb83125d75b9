#include "kernels/cpu/matmul/parts.h"

#include "kernels/cpu/matmul/dispatch.h"
#include "kernels/cpu/matmul/quant_block.h"

namespace tandem::kernels::cpu {

Part MakePart(const Projection& projection, const MatMulKernels& kernels,
              const Conversion& conversion, const Window& all) {
  const Weight& weight = projection.weight;
  CheckLayout(weight, kernels);
  const Kernel& kernel = *FindKernel(kernels, weight.type);
  const Window window = WindowOf(weight);
  Part part = {};
  part.run = kernel.run;
  part.thread_bytes = conversion.tokens <= kFewTokens ? 0 : kernel.scratch_bytes(window.cols());
  part.product = {
      .weights = FirstRow(weight, window),
      .stride_bytes = weight.row_stride_bytes,
      .in_panels = weight.panel_rows > 0,
      .rows = weight.rows,
      .cols = window.cols(),
      .x = nullptr,
      .x_stride = 0,
      .bias = projection.bias,
      .y = projection.y,
      .y_stride = projection.y_stride,
      .scale = weight.scale(0),
      .ahead = BestPanelAhead(),
  };
  switch (kernel.activations) {
    case Activations::kFloats:
      part.product.x = conversion.x;
      part.product.x_stride = conversion.x_stride;
      part.x_row_bytes = conversion.x_stride * sizeof(float);
      break;
    case Activations::kQuantBlocks:
      part.x_at =
          conversion.at + (window.begin - all.begin) / QuantBlock::kValues * sizeof(QuantBlock);
      part.product.x_stride = QuantRowStride(conversion.blocks);
      part.x_row_bytes = part.product.x_stride * sizeof(QuantBlock);
      break;
    case Activations::kBf16Pairs:
      part.x_at = conversion.pairs_at();
      part.product.x_stride = conversion.pairs;
      part.x_row_bytes = conversion.pairs * sizeof(uint32_t);
      break;
  }
  return part;
}

}  // namespace tandem::kernels::cpu
