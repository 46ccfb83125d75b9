#include "kernels/checking/checking_backend.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status.h"
#include "common/base/step_guard.h"
#include "kernels/checking/compare.h"
#include "kernels/checking/mirror.h"
#include "kernels/checking/step_runner.h"

namespace tandem::kernels::checking {
namespace {

class CheckingBackend final : public Backend, private HostStream {
 public:
  CheckingBackend(std::unique_ptr<Backend> subject, std::unique_ptr<Backend> judge,
                  const Tolerances& tolerances)
      : subject_(std::move(subject)),
        judge_(std::move(judge)),
        tolerances_(tolerances),
        name_("checking " + std::string(subject_->name()) + " against " +
              std::string(judge_->name())),
        mirror_(std::make_shared<Mirror>()) {}

  std::string_view name() const override { return name_; }

  absl::StatusOr<Buffer> Allocate(size_t bytes) override {
    TANDEM_ASSIGN_OR_RETURN(Buffer subject, subject_->Allocate(bytes));
    TANDEM_ASSIGN_OR_RETURN(Buffer judge, judge_->Allocate(bytes));
    return Mirror::Add(mirror_, std::move(subject), std::move(judge));
  }

  absl::StatusOr<Buffer> AllocateHost(size_t bytes) override {
    return subject_->AllocateHost(bytes);
  }
  absl::StatusOr<Weight> PlaceWeight(const Weight& host) override {
    TANDEM_ASSIGN_OR_RETURN(Weight subject, subject_->PlaceWeight(host));
    TANDEM_ASSIGN_OR_RETURN(Weight judge, judge_->PlaceWeight(host));
    mirror_->AddWeight(subject, judge);
    return subject;
  }

  void BeginEncode(EncodeMode mode) override {
    mode_ = mode;
    submitted_ = false;
    steps_.clear();
    if (mode == EncodeMode::kRun) return;
    subject_->BeginEncode(mode);
    judge_->BeginEncode(mode);
  }

  absl::StatusOr<size_t> FinishPlan() override {
    TANDEM_ASSIGN_OR_RETURN(const size_t bytes, subject_->FinishPlan());
    return judge_->FinishPlan().status().ok()
               ? absl::StatusOr<size_t>(bytes)
               : absl::ResourceExhaustedError("no scratch for the judge");
  }

  absl::Status Submit(Deadline deadline) override {
    deadline_ = deadline;
    submitted_ = true;
    return absl::OkStatus();
  }

  absl::Status Wait() override {
    NoteBlockingCall("Backend::Wait");
    if (!std::exchange(submitted_, false))
      return absl::FailedPreconditionError("Wait: nothing was submitted");
    StepRunner runner(*subject_, *judge_, *mirror_, deadline_);
    for (size_t i = 0; i < steps_.size(); ++i) {
      TANDEM_RETURN_IF_ERROR(
          runner.Run(steps_[i], absl::StrCat(name_, ": op ", i, " (", steps_[i].name, ")")));
    }
    return absl::OkStatus();
  }

  void Upload(void* device, const void* host, size_t bytes) override {
    void* const judge = mirror_->Judge(device);
    Add({"Upload",
         [=](Backend& b) { b.Upload(device, host, bytes); },
         [=](Backend& b) { b.Upload(judge, host, bytes); },
         {}});
  }
  void Download(void* host, const void* device, size_t bytes) override {
    Add({"Download", [=](Backend& b) { b.Download(host, device, bytes); }, nullptr, {}});
  }

  void Embed(const EmbedParams& p) override {
    EmbedParams j = p;
    j.ids = mirror_->Judge(p.ids);
    j.table = mirror_->Judge(p.table);
    j.out = mirror_->Judge(p.out);
    Add({"Embed",
         [p](Backend& b) { b.Embed(p); },
         [j](Backend& b) { b.Embed(j); },
         {Floats(p.out, p.tokens, p.table.col_count, 0)}});
  }

  void RmsNorm(const RmsNormParams& p) override {
    RmsNormParams j = p;
    j.residual = mirror_->Judge(p.residual);
    j.add = mirror_->Judge(p.add);
    j.weight = mirror_->Judge(p.weight);
    j.out = mirror_->Judge(p.out);
    Add({"RmsNorm",
         [p](Backend& b) { b.RmsNorm(p); },
         [j](Backend& b) { b.RmsNorm(j); },
         {{p.out, Element::kF32, p.rows, p.dim, p.out_stride == 0 ? p.dim : p.out_stride,
           tolerances_.other},
          Floats(p.residual, p.rows, p.dim, tolerances_.other)}});
  }

  void MatMul(const MatMulParams& p) override {
    MatMulParams j = p;
    j.x = mirror_->Judge(p.x);
    Step step{"MatMul", [p](Backend& b) { b.MatMul(p); }, nullptr, {}};
    for (uint32_t i = 0; i < p.num_projections; ++i) {
      const Projection& projection = p.projections[i];
      j.projections[i].weight = mirror_->Judge(projection.weight);
      j.projections[i].bias = mirror_->Judge(projection.bias);
      j.projections[i].y = mirror_->Judge(projection.y);
      step.outputs.push_back({projection.y, Element::kF32, p.tokens, projection.weight.rows,
                              projection.y_stride, tolerances_.matmul});
    }
    step.judge = [j](Backend& b) { b.MatMul(j); };
    Add(std::move(step));
  }

  void RopeWriteKv(const RopeWriteKvParams& p) override {
    RopeWriteKvParams j = p;
    j.q = mirror_->Judge(p.q);
    j.k = mirror_->Judge(p.k);
    j.v = mirror_->Judge(p.v);
    j.positions = mirror_->Judge(p.positions);
    j.slots = mirror_->Judge(p.slots);
    j.inv_freq = mirror_->Judge(p.inv_freq);
    j.pages = JudgePages(p.pages);
    const KvPages& pages = p.pages;
    Step step{"RopeWriteKv",
              [p](Backend& b) { b.RopeWriteKv(p); },
              [j](Backend& b) { b.RopeWriteKv(j); },
              {Floats(p.q, p.tokens, size_t{p.heads} * pages.head_dim, tolerances_.other),
               Floats(p.k, p.tokens, size_t{pages.kv_heads} * pages.head_dim, tolerances_.other),
               PageValues(pages, pages.k, pages.head_dim)}};
    if (!pages.latent) step.outputs.push_back(PageValues(pages, pages.v, pages.value_dim));
    Add(std::move(step));
  }

  void Attention(const AttentionParams& p) override {
    AttentionParams j = p;
    j.q = mirror_->Judge(p.q);
    j.query_offsets = mirror_->Judge(p.query_offsets);
    j.context_lens = mirror_->Judge(p.context_lens);
    j.block_tables = mirror_->Judge(p.block_tables);
    j.pages = JudgePages(p.pages);
    j.sinks = mirror_->Judge(p.sinks);
    j.out = mirror_->Judge(p.out);
    Add({"Attention",
         [p](Backend& b) { b.Attention(p); },
         [j](Backend& b) { b.Attention(j); },
         {Floats(p.out, p.tokens, size_t{p.heads} * p.pages.value_dim, tolerances_.other)}});
  }

  void LayerNorm(const LayerNormParams& p) override {
    LayerNormParams j = p;
    j.residual = mirror_->Judge(p.residual);
    j.add = mirror_->Judge(p.add);
    j.weight = mirror_->Judge(p.weight);
    j.bias = mirror_->Judge(p.bias);
    j.out = mirror_->Judge(p.out);
    Add({"LayerNorm",
         [p](Backend& b) { b.LayerNorm(p); },
         [j](Backend& b) { b.LayerNorm(j); },
         {Floats(p.out, p.rows, p.dim, tolerances_.other),
          Floats(p.residual, p.rows, p.dim, tolerances_.other)}});
  }

  void Route(const RouteParams& p) override {
    RouteParams j = p;
    j.logits = mirror_->Judge(p.logits);
    j.selection_bias = mirror_->Judge(p.selection_bias);
    j.ids = mirror_->Judge(p.ids);
    j.weights = mirror_->Judge(p.weights);
    Add({"Route",
         [p](Backend& b) { b.Route(p); },
         [j](Backend& b) { b.Route(j); },
         {Floats(p.weights, p.tokens, p.top_k, tolerances_.other),
          {p.ids, Element::kI32, p.tokens, p.top_k, p.top_k, 0}}});
  }

  void ExpertMatMul(const ExpertMatMulParams& p) override {
    ExpertMatMulParams j = p;
    j.x = mirror_->Judge(p.x);
    j.ids = mirror_->Judge(p.ids);
    j.weights = mirror_->Judge(p.weights);
    Step step{"ExpertMatMul", [p](Backend& b) { b.ExpertMatMul(p); }, nullptr, {}};
    const size_t rows = p.weights != nullptr ? p.tokens : size_t{p.tokens} * p.top_k;
    for (uint32_t i = 0; i < p.num_projections; ++i) {
      const ExpertProjection& projection = p.projections[i];
      j.projections[i].weight = mirror_->Judge(projection.weight);
      j.projections[i].bias = mirror_->Judge(projection.bias);
      j.projections[i].y = mirror_->Judge(projection.y);
      step.outputs.push_back({projection.y, Element::kF32, rows, projection.weight.rows,
                              projection.weight.rows, tolerances_.matmul});
    }
    step.judge = [j](Backend& b) { b.ExpertMatMul(j); };
    Add(std::move(step));
  }

  void HeadMatMul(const HeadMatMulParams& p) override {
    HeadMatMulParams j = p;
    j.x = mirror_->Judge(p.x);
    j.weight = mirror_->Judge(p.weight);
    j.y = mirror_->Judge(p.y);
    Step step{"HeadMatMul",
              [p](Backend& b) { b.HeadMatMul(p); },
              [j](Backend& b) { b.HeadMatMul(j); },
              {}};
    const uint32_t width = p.transposed ? p.weight.col_count : p.row_count;
    for (uint32_t h = 0; h < p.heads; ++h) {
      step.outputs.push_back({p.y + size_t{h} * p.y_head_stride, Element::kF32, p.tokens, width,
                              p.y_token_stride, tolerances_.matmul});
    }
    Add(std::move(step));
  }

  void AddRows(const AddRowsParams& p) override {
    AddRowsParams j = p;
    j.y = mirror_->Judge(p.y);
    j.x = mirror_->Judge(p.x);
    j.gate = mirror_->Judge(p.gate);
    Add({"AddRows",
         [p](Backend& b) { b.AddRows(p); },
         [j](Backend& b) { b.AddRows(j); },
         {Floats(p.y, p.rows, p.dim, tolerances_.other)}});
  }

  void CopyRows(const CopyRowsParams& p) override {
    CopyRowsParams j = p;
    j.x = mirror_->Judge(p.x);
    j.y = mirror_->Judge(p.y);
    Add({"CopyRows",
         [p](Backend& b) { b.CopyRows(p); },
         [j](Backend& b) { b.CopyRows(j); },
         {{p.y, Element::kF32, p.rows, p.dim, p.y_stride, 0}}});
  }

  void SoftCap(const SoftCapParams& p) override {
    SoftCapParams j = p;
    j.x = mirror_->Judge(p.x);
    Add({"SoftCap",
         [p](Backend& b) { b.SoftCap(p); },
         [j](Backend& b) { b.SoftCap(j); },
         {Floats(p.x, 1, p.count, tolerances_.other)}});
  }

  void Activate(const ActivateParams& p) override {
    ActivateParams j = p;
    j.gate = mirror_->Judge(p.gate);
    j.up = mirror_->Judge(p.up);
    j.out = mirror_->Judge(p.out);
    Add({"Activate",
         [p](Backend& b) { b.Activate(p); },
         [j](Backend& b) { b.Activate(j); },
         {Floats(p.out, p.rows, p.cols, tolerances_.other)}});
  }

  void GatherRows(const GatherRowsParams& p) override {
    GatherRowsParams j = p;
    j.src = mirror_->Judge(p.src);
    j.rows = mirror_->Judge(p.rows);
    j.out = mirror_->Judge(p.out);
    Add({"GatherRows",
         [p](Backend& b) { b.GatherRows(p); },
         [j](Backend& b) { b.GatherRows(j); },
         {Floats(p.out, p.count, p.dim, 0)}});
  }

  void UnshardLogits(const UnshardLogitsParams& p) override {
    // `starts` is promised while encoding only, and the ops run later.
    const std::vector<uint32_t> starts(p.starts, p.starts + p.ranks + 1);
    UnshardLogitsParams j = p;
    j.gathered = mirror_->Judge(p.gathered);
    j.out = mirror_->Judge(p.out);
    const auto with_starts = [starts](UnshardLogitsParams params) {
      return [starts, params](Backend& b) mutable {
        params.starts = starts.data();
        b.UnshardLogits(params);
      };
    };
    Add({"UnshardLogits",
         with_starts(p),
         with_starts(j),
         {Floats(p.out, p.rows, starts.back(), 0)}});
  }

  void Sample(const SampleParams& p) override {
    SampleParams j = p;
    j.logits = mirror_->Judge(p.logits);
    j.rows = mirror_->Judge(p.rows);
    j.banned = mirror_->Judge(p.banned);
    j.out = mirror_->Judge(p.out);
    Add({"Sample",
         [p](Backend& b) { b.Sample(p); },
         [j](Backend& b) { b.Sample(j); },
         {{p.out, Element::kI32, 1, p.count, p.count, 0}}});
  }

  void LogProbs(const LogProbsParams& p) override {
    LogProbsParams j = p;
    j.logits = mirror_->Judge(p.logits);
    j.rows = mirror_->Judge(p.rows);
    j.ids = mirror_->Judge(p.ids);
    j.sampled = mirror_->Judge(p.sampled);
    j.out_ids = mirror_->Judge(p.out_ids);
    j.out_logprobs = mirror_->Judge(p.out_logprobs);
    j.out_ranks = mirror_->Judge(p.out_ranks);
    Add({"LogProbs",
         [p](Backend& b) { b.LogProbs(p); },
         [j](Backend& b) { b.LogProbs(j); },
         {{p.out_ids, Element::kI32, 1, p.out_count, p.out_count, 0},
          Floats(p.out_logprobs, 1, p.out_count, tolerances_.other),
          {p.out_ranks, Element::kI32, 1, p.out_count, p.out_count, 0}}});
  }

  HostStream* host_stream() override { return subject_->host_stream() == nullptr ? nullptr : this; }

 private:
  void Enqueue(std::function<absl::Status(Deadline)> work) override {
    Add({"host work",
         [work = std::move(work)](Backend& b) { b.host_stream()->Enqueue(work); },
         nullptr,
         {},
         true});
  }

  static Output Floats(const float* data, size_t rows, size_t cols, float tolerance) {
    return {data, Element::kF32, rows, cols, cols, tolerance};
  }

  static Element PageElement(tensor::Type type) {
    switch (type) {
      case tensor::Type::kF32:
        return Element::kF32;
      case tensor::Type::kBF16:
        return Element::kBF16;
      case tensor::Type::kQ8_0:
        return Element::kQ8_0;
      default:
        return Element::kF16;
    }
  }

  Output PageValues(const KvPages& pages, const void* data, size_t dim) const {
    const size_t rows = size_t{pages.num_blocks} * pages.kv_heads * pages.block_size;
    return {data, PageElement(pages.type), rows, dim, dim, tolerances_.other};
  }

  KvPages JudgePages(KvPages pages) const {
    pages.k = mirror_->Judge(static_cast<std::byte*>(pages.k));
    pages.v = mirror_->Judge(static_cast<std::byte*>(pages.v));
    return pages;
  }

  // Plans at once, runs later.
  void Add(Step step) {
    if (mode_ == EncodeMode::kRun) return steps_.push_back(std::move(step));
    step.subject(*subject_);
    if (step.judge) step.judge(*judge_);
  }

  const std::unique_ptr<Backend> subject_;
  const std::unique_ptr<Backend> judge_;
  const Tolerances tolerances_;
  const std::string name_;
  // Shared with the buffers given out, which may outlive this.
  const std::shared_ptr<Mirror> mirror_;
  EncodeMode mode_ = EncodeMode::kRun;
  Deadline deadline_ = Deadline::At({});
  bool submitted_ = false;
  std::vector<Step> steps_;
};

}  // namespace

std::unique_ptr<Backend> MakeCheckingBackend(std::unique_ptr<Backend> subject,
                                             std::unique_ptr<Backend> judge,
                                             const Tolerances& tolerances) {
  return std::make_unique<CheckingBackend>(std::move(subject), std::move(judge), tolerances);
}

}  // namespace tandem::kernels::checking
