#include <algorithm>
#include <vector>

#include "kernels/reference/dot.h"
#include "kernels/reference/ops.h"

namespace tandem::kernels::reference {
namespace {

constexpr uint32_t kOutputsPerTask = 8;

struct ExpertTask {
  ExpertMatMulParams params;
  uint32_t projection;
};

// One output of every token: experts in ascending order, each of their rows dequantised once.
class OutputColumn {
 public:
  OutputColumn(const ExpertTask& task, uint32_t n, std::byte* scratch)
      : p_(task.params),
        projection_(task.params.projections[task.projection]),
        n_(n),
        row_(reinterpret_cast<float*>(scratch)) {}

  void Run() {
    const Weight& weight = projection_.weight;
    if (p_.weights != nullptr) {
      for (size_t t = 0; t < p_.tokens; ++t) projection_.y[t * weight.rows + n_] = 0.0f;
    }
    for (uint32_t expert = 0; expert < p_.num_experts; ++expert) RunExpert(expert);
  }

 private:
  void RunExpert(uint32_t expert) {
    const Weight& weight = projection_.weight;
    const auto id = static_cast<int32_t>(p_.expert_begin + expert);
    bool loaded = false;
    for (size_t pair = 0; pair < size_t{p_.tokens} * p_.top_k; ++pair) {
      if (p_.ids[pair] != id) continue;
      if (!loaded) {
        LoadRow(weight,
                static_cast<const std::byte*>(weight.data) + expert * weight.matrix_stride_bytes,
                n_, row_);
      }
      loaded = true;
      const size_t token = pair / p_.top_k;
      const float* x = p_.x + (p_.weights != nullptr ? pair : token) * p_.x_stride;
      float value = static_cast<float>(Dot(x, row_ + weight.col_begin, weight.col_count)) *
                    weight.scale(expert);
      if (projection_.bias != nullptr)
        value += projection_.bias[expert * projection_.bias_stride + n_];
      if (p_.weights != nullptr) {
        projection_.y[token * weight.rows + n_] += p_.weights[pair] * value;
      } else {
        projection_.y[pair * weight.rows + n_] = value;
      }
    }
  }

  const ExpertMatMulParams& p_;
  const ExpertProjection& projection_;
  const uint32_t n_;
  float* const row_;
};

void MultiplyOutputs(const ExpertTask& task, const host::TaskContext& context) {
  const uint32_t rows = task.params.projections[task.projection].weight.rows;
  const uint32_t begin = context.task * kOutputsPerTask;
  for (uint32_t n = begin; n < std::min(rows, begin + kOutputsPerTask); ++n) {
    OutputColumn(task, n, context.thread_scratch).Run();
  }
}

}  // namespace

void EncodeOp(host::OpList& list, const ExpertMatMulParams& params) {
  for (uint32_t i = 0; i < params.num_projections; ++i) {
    const Weight& weight = params.projections[i].weight;
    list.ReserveScratch(0, weight.cols * sizeof(float));
    const uint32_t tasks = (weight.rows + kOutputsPerTask - 1) / kOutputsPerTask;
    list.Add("expert_matmul", params.tokens == 0 ? 0 : tasks, &MultiplyOutputs,
             ExpertTask{params, i});
  }
}

}  // namespace tandem::kernels::reference
