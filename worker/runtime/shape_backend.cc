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
  absl::StatusOr<kernels::Ticket> Submit(Deadline) override { return NoData(); }
  absl::Status Wait(kernels::Ticket) override { return NoData(); }
  void Upload(void*, const void*, size_t) override {}
  void Download(void*, const void*, size_t) override {}
  void Encode(const kernels::Op&) override {}
  kernels::HostStream* host_stream() override { return nullptr; }
};

}  // namespace

std::unique_ptr<kernels::Backend> MakeShapeBackend() { return std::make_unique<ShapeBackend>(); }

}  // namespace tandem::worker
