#include <algorithm>

#include "common/base/check.h"
#include "kernels/cpu/matmul/dispatch.h"
#include "kernels/cpu/matmul/encode.h"
#include "kernels/cpu/matmul/quant_block.h"
#include "kernels/cpu/matmul/quantize.h"
#include "kernels/cpu/matmul/window.h"

namespace tandem::kernels::cpu {
namespace {

// Tokens of a plain task, and columns of a transposed one: sized so that the float scratch fits L2.
constexpr uint32_t kTokensPerTask = 252;  // whole sets of tokens: 3, 4 or 6
constexpr uint32_t kColsPerTask = 128;

struct Task {
  HeadMatMulParams params;
  Kernel kernel;  // of the weight's type
  Kernel f32;     // transposed
  Window window;
  uint32_t x_blocks;       // plain: of a quantised row; 0: x stays floats
  uint32_t parts;          // per head: of tokens (plain) or columns (transposed)
  uint32_t cols_per_task;  // transposed: whole blocks
  size_t product_at;       // transposed: where the kernel's own scratch begins

  // The head's first row in use, at column `col`, where a block begins.
  const std::byte* weights(uint32_t head, uint32_t col) const {
    const size_t row = size_t{head} * params.rows_per_head + params.row_begin;
    return static_cast<const std::byte*>(params.weight.data) +
           row * params.weight.row_stride_bytes + tensor::RowBytes(params.weight.type, col);
  }
};

// One token, all heads.
void RunQuantise(const Task& task, const host::TaskContext& context) {
  const HeadMatMulParams& p = task.params;
  auto* out = reinterpret_cast<QuantBlock*>(context.shared_scratch) +
              size_t{context.task} * p.heads * task.x_blocks;
  const float* x = p.x + size_t{context.task} * p.x_token_stride;
  Quantizer quantizer;
  for (uint32_t head = 0; head < p.heads; ++head, x += p.x_head_stride, out += task.x_blocks) {
    quantizer.AddRow(x, p.weight.col_count, p.weight.col_begin - task.window.begin, task.x_blocks,
                     out);
  }
}

void RunPlain(const Task& task, const host::TaskContext& context) {
  const HeadMatMulParams& p = task.params;
  const uint32_t head = context.task / task.parts;
  const uint32_t token = context.task % task.parts * kTokensPerTask;
  Product product = {
      .weights = task.weights(head, task.window.begin),
      .stride_bytes = p.weight.row_stride_bytes,
      .in_panels = false,
      .rows = p.row_count,
      .cols = task.window.cols(),
      .x = p.x + size_t{head} * p.x_head_stride,
      .x_stride = p.x_token_stride,
      .bias = nullptr,
      .y = p.y + size_t{head} * p.y_head_stride,
      .y_stride = p.y_token_stride,
  };
  if (task.x_blocks > 0) {
    product.x =
        reinterpret_cast<const QuantBlock*>(context.shared_scratch) + size_t{head} * task.x_blocks;
    product.x_stride = size_t{p.heads} * task.x_blocks;
  }
  task.kernel.run(product, {0, p.row_count, token, std::min(token + kTokensPerTask, p.tokens)},
                  context.thread_scratch);
}

// Columns [begin, end) of a head, as rows of a float matrix.
void RunTransposed(const Task& task, const host::TaskContext& context) {
  const HeadMatMulParams& p = task.params;
  const uint32_t head = context.task / task.parts;
  const uint32_t begin = task.window.begin + context.task % task.parts * task.cols_per_task;
  const uint32_t end = std::min(begin + task.cols_per_task, task.window.end);
  auto* const values = reinterpret_cast<float*>(context.thread_scratch);
  const uint32_t stride = RoundUp(p.row_count, kRowAlign);
  task.kernel.transpose(
      {task.weights(head, begin), p.weight.row_stride_bytes, p.row_count, end - begin}, values,
      stride);
  // The part inside the rank's window, which was widened to whole blocks on both sides.
  const uint32_t first = std::max(begin, p.weight.col_begin);
  const uint32_t last = std::min(end, p.weight.col_begin + p.weight.col_count);
  if (first >= last) return;
  const Product product = {
      .weights = reinterpret_cast<const std::byte*>(values + size_t{first - begin} * stride),
      .stride_bytes = stride * sizeof(float),
      .in_panels = false,
      .rows = last - first,
      .cols = p.row_count,
      .x = p.x + size_t{head} * p.x_head_stride,
      .x_stride = p.x_token_stride,
      .bias = nullptr,
      .y = p.y + size_t{head} * p.y_head_stride + (first - p.weight.col_begin),
      .y_stride = p.y_token_stride,
  };
  task.f32.run(product, {0, last - first, 0, p.tokens}, context.thread_scratch + task.product_at);
}

void EncodePlain(host::OpList& list, Task task, bool few) {
  const HeadMatMulParams& p = task.params;
  if (IsQuantised(p.weight)) task.x_blocks = QuantBlocks(task.window);
  task.parts = CeilDiv(p.tokens, kTokensPerTask);
  list.ReserveScratch(size_t{p.tokens} * p.heads * task.x_blocks * sizeof(QuantBlock),
                      few ? 0 : task.kernel.scratch_bytes(task.window.cols()));
  if (task.x_blocks > 0) list.Add("head_matmul.quantise", p.tokens, &RunQuantise, task);
  list.Add("head_matmul", p.heads * task.parts, &RunPlain, task);
}

void EncodeTransposed(host::OpList& list, Task task, bool few) {
  const HeadMatMulParams& p = task.params;
  task.cols_per_task = RoundUp(kColsPerTask, tensor::Traits(p.weight.type).block_values);
  task.parts = CeilDiv(task.window.cols(), task.cols_per_task);
  task.product_at = size_t{task.cols_per_task} * RoundUp(p.row_count, kRowAlign) * sizeof(float);
  list.ReserveScratch(0, task.product_at + (few ? 0 : task.f32.scratch_bytes(p.row_count)));
  list.Add("head_matmul", p.heads * task.parts, &RunTransposed, task);
}

}  // namespace

void EncodeHeadMatMulWith(host::OpList& list, const HeadMatMulParams& params,
                          const MatMulKernels& kernels) {
  const Weight& w = params.weight;
  TANDEM_CHECK(params.row_begin <= params.rows_per_head &&
               params.row_count <= params.rows_per_head - params.row_begin)
      << params.row_begin << " + " << params.row_count << " of " << params.rows_per_head;
  TANDEM_CHECK(w.rows >= uint64_t{params.heads} * params.rows_per_head) << w.rows << " rows";
  CheckColumns(w);
  TANDEM_CHECK(w.panel_rows == 0) << "the weight was not placed for heads";
  // Plain weights are multiplied with floats.
  const Kernel* const kernel =
      w.type == tensor::Type::kBF16 ? &kernels.floats.bf16 : FindKernel(kernels, w.type);
  TANDEM_CHECK(kernel != nullptr) << tensor::Name(w.type);
  if (params.tokens == 0 || params.row_count == 0 || w.col_count == 0) return;
  Task task = {};
  task.params = params;
  task.kernel = *kernel;
  task.f32 = kernels.floats.f32;
  task.window = WindowOf(w);
  const bool few = params.tokens <= kFewTokens;
  (params.transposed ? EncodeTransposed : EncodePlain)(list, task, few);
}

}  // namespace tandem::kernels::cpu
