#include <algorithm>

#include "kernels/reference/dot.h"
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

void MultiplyOutputs(const MatMulTask& task, const host::TaskContext& context) {
  const Weight& weight = task.projection.weight;
  auto* const row = reinterpret_cast<float*>(context.thread_scratch);
  const uint32_t begin = context.task * kOutputsPerTask;
  const uint32_t end = std::min(weight.rows, begin + kOutputsPerTask);
  for (uint32_t n = begin; n < end; ++n) {
    LoadRow(weight, static_cast<const std::byte*>(weight.data), n, row);
    const float bias = task.projection.bias != nullptr ? task.projection.bias[n] : 0.0f;
    for (size_t t = 0; t < task.tokens; ++t) {
      const double dot = Dot(task.x + t * task.x_stride, row + weight.col_begin, weight.col_count);
      task.projection.y[t * task.projection.y_stride + n] =
          static_cast<float>(dot) * weight.scale(0) + bias;
    }
  }
}

}  // namespace

void EncodeOp(host::OpList& list, const MatMulParams& params) {
  for (uint32_t i = 0; i < params.num_projections; ++i) {
    const Projection& projection = params.projections[i];
    list.ReserveScratch(0, projection.weight.cols * sizeof(float));
    const uint32_t tasks = (projection.weight.rows + kOutputsPerTask - 1) / kOutputsPerTask;
    list.Add("matmul", params.tokens == 0 ? 0 : tasks, &MultiplyOutputs,
             MatMulTask{params.x, params.tokens, params.x_stride, projection});
  }
}

}  // namespace tandem::kernels::reference
