#include "kernels/cpu/backend.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "common/base/check.h"
#include "common/base/status.h"
#include "kernels/cpu/attention/plan.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/matmul.h"
#include "kernels/cpu/weight_store.h"
#include "kernels/host/host_backend.h"
#include "kernels/host/ops.h"
#include "kernels/host/vocabulary_loops.h"
#include "kernels/reference/ops.h"

namespace tandem::kernels::cpu {
namespace {

// Encodes one op: by the overloads here if it has SIMD kernels, otherwise as the reference does.
class CpuOps {
 public:
  CpuOps(host::OpList& list, Isa isa) : list_(list), isa_(isa), kernels_(KernelsOf(isa)) {}

  template <class Params>
  void operator()(const Params& params) const {
    reference::EncodeOp(list_, params);
  }
  template <Composite Params>
  void operator()(const Params& params) const {
    Decompose(params, *this);
  }

  void operator()(const RmsNormParams& params) const {
    const RmsNormTask task = MakeRmsNormTask(params);
    list_.Add("rms_norm", (params.rows + task.rows_per_task - 1) / task.rows_per_task,
              kernels_.rms_norm, task);
  }

  void operator()(const MatMulParams& params) const { EncodeMatMul(list_, params, isa_); }
  void operator()(const NormMatMulParams& params) const { NormMatMul(params.norm, params.product); }
  void operator()(const QkvParams& params) const {
    NormMatMul(params.norm, params.product);
    VisitPart(params.v_norm, *this);
    VisitPart(params.q_norm, *this);
    VisitPart(params.k_norm, *this);
    (*this)(params.write);
  }
  void operator()(const FeedForwardParams& params) const {
    LayerNorm(params.norm);
    const auto* const add = std::get_if<MatMulAddParams>(&params.down);
    EncodeFeedForward(list_, params,
                      add != nullptr ? add->product : std::get<MatMulParams>(params.down), isa_);
    if (add != nullptr) (*this)(add->add);
  }
  void operator()(const ExpertMatMulParams& params) const {
    EncodeExpertMatMul(list_, params, isa_);
  }
  void operator()(const HeadMatMulParams& params) const { EncodeHeadMatMul(list_, params, isa_); }

  void operator()(const RopeWriteKvParams& params) const {
    list_.ReserveScratch(0, (params.rotary_dims + params.pages.head_dim) * sizeof(float));
    list_.Add("rope_write_kv", params.tokens, kernels_.rope_write_kv, params);
  }

  void operator()(const ShortConvParams& params) const {
    TANDEM_CHECK(params.taps >= 2 && params.taps <= kMaxConvTaps) << params.taps << " taps";
    const uint32_t blocks = (params.channels + kConvChannels - 1) / kConvChannels;
    list_.Add("short_conv", params.batch.num_seqs * blocks, kernels_.short_conv, params);
  }

  void operator()(const GatedDeltaRuleParams& params) const {
    const uint32_t blocks = (params.dim + kStateColumns - 1) / kStateColumns;
    list_.ReserveScratch(0, 3 * params.dim * sizeof(float));
    list_.Add("gated_delta_rule", params.batch.num_seqs * params.value_heads * blocks,
              kernels_.gated_delta_rule, params);
  }

  void operator()(const AttentionParams& params) const {
    const AttentionTask task = PrepareAttention(list_, params);
    if (params.tokens == 0) return;
    list_.Add("attention_plan", 1, &BuildAttentionPlan, task);
    const AttentionKernels& kernels = AttentionKernelsOf(isa_, params.pages);
    list_.Add("attention", list_.threads(), kernels.attend, task);
    if (task.max_partials > 0)
      list_.Add("attention_merge", list_.threads(), kernels.merge_splits, task);
  }

  void operator()(const SampleParams& params) const {
    host::EncodeSample(
        list_, params,
        isa_ == Isa::kAvx512 ? host::avx512::kVocabularyLoops : host::avx2::kVocabularyLoops);
  }

  void operator()(const ActivateParams& params) const {
    TANDEM_CHECK(params.up != nullptr || params.function != Activation::kClampedSwiGlu);
    const uint64_t count = uint64_t{params.rows} * params.cols;
    const auto tasks = static_cast<uint32_t>((count + kValuesPerTask - 1) / kValuesPerTask);
    list_.Add("activate", tasks, kernels_.activate,
              ActivateTask{params.function, params.gate, params.up, params.out, params.gate_scale,
                           params.cols, count, kValuesPerTask});
  }

 private:
  // RMSNorms are done by the entry that converts a product's activations.
  void NormMatMul(const NormParams& norm, const MatMulParams& product) const {
    LayerNorm(norm);
    EncodeNormMatMul(list_, norm, product, isa_);
  }
  void LayerNorm(const NormParams& norm) const {
    if (const auto* layer_norm = std::get_if<LayerNormParams>(&norm)) (*this)(*layer_norm);
  }

  host::OpList& list_;
  const Isa isa_;
  const Kernels& kernels_;
};

class CpuBackend final : public host::HostBackend, private WeightCopy {
 public:
  CpuBackend(Isa isa, uint32_t threads, bool repack, const CpuSet& cpus)
      : HostBackend(std::string("cpu-") + Name(isa), threads, cpus), ops_(list(), isa) {
    if (repack) weights_.emplace(PanelRows(isa), threads);
  }

  bool WantsKeyColumns(const KvPages& shape) const override { return TakesKeyColumns(shape); }

  absl::StatusOr<Weight> PlaceWeight(const Weight& host) override {
    TANDEM_ASSIGN_OR_RETURN(const Weight checked, HostBackend::PlaceWeight(host));
    // A lookup reads few rows, for which panels are no help: ranks share the file's pages.
    if (!weights_.has_value() || host.use == WeightUse::kLookup) return checked;
    return weights_->Place(
        checked, [this](const host::OpList& list) { return RunBetweenSteps(list); }, copied_);
  }
  WeightCopy* weight_copy() override { return weights_.has_value() ? this : nullptr; }

  void Encode(const Op& op) override { std::visit(ops_, op); }

 private:
  bool CanCompute(tensor::Type type) const override { return CanMatMul(type); }
  void OnCopied(std::function<void(std::span<const std::byte>)> copied) override {
    copied_ = std::move(copied);
  }

  const CpuOps ops_;
  std::optional<WeightStore> weights_;  // none: weights stay where they are
  WeightStore::Copied copied_;
};

}  // namespace

std::unique_ptr<Backend> MakeCpuBackend(Isa isa, uint32_t threads, bool repack,
                                        const CpuSet& cpus) {
  TANDEM_CHECK(MissingInstructions(isa).empty()) << Name(isa);
  return std::make_unique<CpuBackend>(isa, threads, repack, cpus);
}

}  // namespace tandem::kernels::cpu
