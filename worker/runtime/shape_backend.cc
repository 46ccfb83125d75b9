#include "worker/runtime/shape_backend.h"

namespace tandem::worker {
namespace {

absl::Status NoData() {
  return absl::UnimplementedError("a backend of shapes alone holds and runs nothing");
}

class ShapeBackend final : public kernels::Backend {
 public:
  std::string_view name() const override { return "shapes"; }

  absl::StatusOr<kernels::Buffer> Allocate(size_t) override { return NoData(); }
  absl::StatusOr<kernels::Buffer> AllocateHost(size_t) override { return NoData(); }
  absl::StatusOr<kernels::Weight> PlaceWeight(const kernels::Weight& host) override { return host; }
  void BeginEncode(kernels::EncodeMode) override {}
  absl::StatusOr<size_t> FinishPlan() override { return 0; }
  absl::Status Submit(Deadline) override { return NoData(); }
  absl::Status Wait() override { return NoData(); }
  void Upload(void*, const void*, size_t) override {}
  void Download(void*, const void*, size_t) override {}
  void Embed(const kernels::EmbedParams&) override {}
  void RmsNorm(const kernels::RmsNormParams&) override {}
  void LayerNorm(const kernels::LayerNormParams&) override {}
  void MatMul(const kernels::MatMulParams&) override {}
  void Route(const kernels::RouteParams&) override {}
  void ExpertMatMul(const kernels::ExpertMatMulParams&) override {}
  void HeadMatMul(const kernels::HeadMatMulParams&) override {}
  void RopeWriteKv(const kernels::RopeWriteKvParams&) override {}
  void Attention(const kernels::AttentionParams&) override {}
  void Activate(const kernels::ActivateParams&) override {}
  void AddRows(const kernels::AddRowsParams&) override {}
  void CopyRows(const kernels::CopyRowsParams&) override {}
  void SoftCap(const kernels::SoftCapParams&) override {}
  void GatherRows(const kernels::GatherRowsParams&) override {}
  void UnshardLogits(const kernels::UnshardLogitsParams&) override {}
  void Sample(const kernels::SampleParams&) override {}
  void LogProbs(const kernels::LogProbsParams&) override {}

  kernels::HostStream* host_stream() override { return nullptr; }
};

}  // namespace

std::unique_ptr<kernels::Backend> MakeShapeBackend() { return std::make_unique<ShapeBackend>(); }

}  // namespace tandem::worker
