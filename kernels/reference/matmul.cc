#include <algorithm>

#include "common/tensor/dequantize.h"
#include "kernels/reference/ops.h"

namespace tandem::kernels::reference {
namespace {

constexpr uint32_t kOutputsPerTask = 8;

struct MatMulTask {
  const float* x;
  uint32_t tokens;
  uint32_t x_stride;
  Projection projection;
};

// Eight running sums, joined at the end: a fixed order that is still quick.
double Dot(const float* a, const float* b, size_t n) {
  double sums[8] = {};
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (size_t j = 0; j < 8; ++j) sums[j] += double{a[i + j]} * b[i + j];
  }
  for (; i < n; ++i) sums[0] += double{a[i]} * b[i];
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

void MultiplyOutputs(const MatMulTask& task, const host::TaskContext& context) {
  const Weight& weight = task.projection.weight;
  auto* const row = reinterpret_cast<float*>(context.thread_scratch);
  const uint32_t begin = context.task * kOutputsPerTask;
  const uint32_t end = std::min(weight.rows, begin + kOutputsPerTask);
  for (uint32_t n = begin; n < end; ++n) {
    tensor::Dequantize(weight.type,
                       static_cast<const std::byte*>(weight.data) + n * weight.row_stride_bytes,
                       row, weight.cols);
    const float bias = task.projection.bias != nullptr ? task.projection.bias[n] : 0.0f;
    for (size_t t = 0; t < task.tokens; ++t) {
      const double dot = Dot(task.x + t * task.x_stride, row + weight.col_begin, weight.col_count);
      task.projection.y[t * task.projection.y_stride + n] = static_cast<float>(dot) + bias;
    }
  }
}

}  // namespace

void EncodeMatMul(host::OpList& list, const MatMulParams& params) {
  for (uint32_t i = 0; i < params.num_projections; ++i) {
    const Projection& projection = params.projections[i];
    list.ReserveScratch(0, projection.weight.cols * sizeof(float));
    const uint32_t tasks = (projection.weight.rows + kOutputsPerTask - 1) / kOutputsPerTask;
    list.Add("matmul", params.tokens == 0 ? 0 : tasks, &MultiplyOutputs,
             MatMulTask{params.x, params.tokens, params.x_stride, projection});
  }
}

}  // namespace tandem::kernels::reference
