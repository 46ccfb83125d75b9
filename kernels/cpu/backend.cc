#include "kernels/cpu/backend.h"

#include <algorithm>
#include <string>

#include "common/base/check.h"
#include "kernels/cpu/attention_plan.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/matmul.h"
#include "kernels/host/host_backend.h"

namespace tandem::kernels::cpu {
namespace {

// Values per task of ops that go over memory once: about a microsecond of work.
constexpr uint32_t kValuesPerTask = 4096;

class CpuBackend final : public host::HostBackend {
 public:
  CpuBackend(Isa isa, uint32_t threads)
      : HostBackend(std::string("cpu-") + Name(isa), threads),
        isa_(isa),
        kernels_(KernelsOf(isa)) {}

  void RmsNorm(const RmsNormParams& params) override {
    const uint32_t rows = std::max(1u, kValuesPerTask / std::max(1u, params.dim));
    list().Add("rms_norm", (params.rows + rows - 1) / rows, kernels_.rms_norm,
               RmsNormTask{params, rows});
  }

  void MatMul(const MatMulParams& params) override { EncodeMatMul(list(), params, isa_); }
  void ExpertMatMul(const ExpertMatMulParams& params) override {
    EncodeExpertMatMul(list(), params, isa_);
  }
  void HeadMatMul(const HeadMatMulParams& params) override {
    EncodeHeadMatMul(list(), params, isa_);
  }

  void RopeWriteKv(const RopeWriteKvParams& params) override {
    list().ReserveScratch(0, params.rotary_dims * sizeof(float));
    list().Add("rope_write_kv", params.tokens, kernels_.rope_write_kv, params);
  }

  void Attention(const AttentionParams& params) override {
    const AttentionTask task = PrepareAttention(list(), params);
    if (params.tokens == 0) return;
    list().Add("attention_plan", 1, &BuildAttentionPlan, task);
    list().Add("attention", list().threads(), kernels_.attend, task);
    if (task.max_partials > 0)
      list().Add("attention_merge", list().threads(), kernels_.merge_splits, task);
  }

  void Activate(const ActivateParams& params) override {
    TANDEM_CHECK(params.up != nullptr || params.function != Activation::kClampedSwiGlu);
    const uint64_t count = uint64_t{params.rows} * params.cols;
    const auto tasks = static_cast<uint32_t>((count + kValuesPerTask - 1) / kValuesPerTask);
    list().Add(
        "activate", tasks, kernels_.activate,
        ActivateTask{params.function, params.gate, params.up, params.out, count, kValuesPerTask});
  }

 private:
  bool CanCompute(tensor::Type type) const override { return CanMatMul(type); }

  const Isa isa_;
  const Kernels& kernels_;
};

}  // namespace

std::unique_ptr<Backend> MakeCpuBackend(Isa isa, uint32_t threads) {
  TANDEM_CHECK(MissingInstructions(isa).empty()) << Name(isa);
  return std::make_unique<CpuBackend>(isa, threads);
}

}  // namespace tandem::kernels::cpu
