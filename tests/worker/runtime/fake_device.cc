#include "tests/worker/runtime/fake_device.h"

#include <sys/mman.h>

#include <cstring>
#include <span>

#include "common/base/check.h"
#include "common/base/status.h"
#include "common/base/step_guard.h"
#include "common/tensor/type.h"
#include "kernels/factory.h"
#include "kernels/reference/backend.h"

namespace tandem::worker {
namespace {

using kernels::Backend;
using kernels::Buffer;
using kernels::EncodeMode;

constexpr size_t kPageBytes = 4096;

// Address ranges in use.
using Ranges = std::vector<std::pair<std::byte*, size_t>>;

absl::StatusOr<Buffer> AllocateIn(const std::shared_ptr<Ranges>& ranges, size_t bytes, int access) {
  const size_t whole = std::max((bytes + kPageBytes - 1) / kPageBytes, size_t{1}) * kPageBytes;
  void* const at = mmap(nullptr, whole, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return absl::ResourceExhaustedError("mmap of a fake device");
  ranges->emplace_back(static_cast<std::byte*>(at), whole);
  return Buffer(at, bytes, [ranges, whole](void* data) {
    if (data == nullptr) return;
    std::erase(*ranges, std::pair(static_cast<std::byte*>(data), whole));
    munmap(data, whole);
  });
}

using EncodedOp = std::function<void(Backend&)>;

struct FakeGraph : kernels::Graph {
  std::vector<EncodedOp> ops;
};

class FakeDevice final : public Backend, private kernels::HostStream {
 public:
  FakeDevice(const FakeDeviceOptions& options, std::shared_ptr<FakeDeviceNotes> notes)
      : options_(options),
        notes_(std::move(notes)),
        inner_(kernels::reference::MakeReferenceBackend(1)) {}

  std::string_view name() const override { return "fake device"; }

  absl::StatusOr<Buffer> Allocate(size_t bytes) override {
    NoteBlockingCall("FakeDevice::Allocate");
    notes_->allocated_bytes += bytes;
    return AllocateIn(device_, bytes, PROT_NONE);
  }
  absl::StatusOr<Buffer> AllocateHost(size_t bytes) override {
    NoteBlockingCall("FakeDevice::AllocateHost");
    return AllocateIn(host_, bytes, PROT_READ | PROT_WRITE);
  }
  std::optional<kernels::DeviceMemory> Memory() override { return options_.memory; }

  absl::StatusOr<kernels::Weight> PlaceWeight(const kernels::Weight& host) override {
    TANDEM_ASSIGN_OR_RETURN(kernels::Weight placed, inner_->PlaceWeight(host));
    const size_t bytes = (host.count - 1) * host.matrix_stride_bytes +
                         (host.rows - 1) * host.row_stride_bytes +
                         tensor::RowBytes(host.type, host.cols);
    TANDEM_ASSIGN_OR_RETURN(Buffer copy, Allocate(bytes));
    Open(PROT_READ | PROT_WRITE);
    std::memcpy(copy.data(), host.data, bytes);
    Open(PROT_NONE);
    if (copied_) copied_({static_cast<const std::byte*>(host.data), bytes});
    placed.data = copy.data();
    notes_->weight_bytes += bytes;
    weights_.push_back(std::move(copy));
    return placed;
  }

  void OnWeightCopied(std::function<void(std::span<const std::byte> part)> copied) override {
    copied_ = std::move(copied);
  }

  void BeginEncode(EncodeMode mode) override {
    mode_ = mode;
    captured_.clear();
    if (mode != EncodeMode::kCapture) inner_->BeginEncode(mode);
  }
  absl::StatusOr<size_t> FinishPlan() override { return inner_->FinishPlan(); }
  bool SupportsGraphs() const override { return options_.graphs; }
  absl::StatusOr<std::unique_ptr<kernels::Graph>> FinishCapture() override {
    TANDEM_CHECK(mode_ == EncodeMode::kCapture);
    ++notes_->captures;
    auto graph = std::make_unique<FakeGraph>();
    graph->ops = std::move(captured_);
    return graph;
  }
  void Replay(const kernels::Graph& graph) override {
    ++notes_->replays;
    for (const EncodedOp& op : static_cast<const FakeGraph&>(graph).ops) op(*inner_);
  }
  absl::Status Submit(Deadline deadline) override {
    if (options_.blocks_in_submit) NoteBlockingCall("FakeDevice::Submit");
    return inner_->Submit(deadline);
  }
  absl::Status Wait() override {
    Open(PROT_READ | PROT_WRITE);
    const absl::Status status = inner_->Wait();
    Open(PROT_NONE);
    return status;
  }

  void Upload(void* device, const void* host, size_t bytes) override {
    TANDEM_CHECK(mode_ != EncodeMode::kCapture) << "copies do not belong in a graph";
    notes_->uploads.push_back({bytes, IsHost(host)});
    inner_->Upload(device, host, bytes);
  }
  void Download(void* host, const void* device, size_t bytes) override {
    TANDEM_CHECK(mode_ != EncodeMode::kCapture) << "copies do not belong in a graph";
    notes_->downloads.push_back({bytes, IsHost(host)});
    inner_->Download(host, device, bytes);
  }

  void Embed(const kernels::EmbedParams& p) override { Do(&Backend::Embed, p); }
  void RmsNorm(const kernels::RmsNormParams& p) override { Do(&Backend::RmsNorm, p); }
  void LayerNorm(const kernels::LayerNormParams& p) override { Do(&Backend::LayerNorm, p); }
  void MatMul(const kernels::MatMulParams& p) override { Do(&Backend::MatMul, p); }
  void Route(const kernels::RouteParams& p) override { Do(&Backend::Route, p); }
  void ExpertMatMul(const kernels::ExpertMatMulParams& p) override {
    Do(&Backend::ExpertMatMul, p);
  }
  void HeadMatMul(const kernels::HeadMatMulParams& p) override { Do(&Backend::HeadMatMul, p); }
  void RopeWriteKv(const kernels::RopeWriteKvParams& p) override { Do(&Backend::RopeWriteKv, p); }
  void Attention(const kernels::AttentionParams& p) override { Do(&Backend::Attention, p); }
  void Activate(const kernels::ActivateParams& p) override { Do(&Backend::Activate, p); }
  void AddRows(const kernels::AddRowsParams& p) override { Do(&Backend::AddRows, p); }
  void CopyRows(const kernels::CopyRowsParams& p) override { Do(&Backend::CopyRows, p); }
  void SoftCap(const kernels::SoftCapParams& p) override { Do(&Backend::SoftCap, p); }
  void GatherRows(const kernels::GatherRowsParams& p) override { Do(&Backend::GatherRows, p); }
  void UnshardLogits(const kernels::UnshardLogitsParams& p) override {
    Do(&Backend::UnshardLogits, p);
  }
  void Sample(const kernels::SampleParams& p) override { Do(&Backend::Sample, p); }
  void LogProbs(const kernels::LogProbsParams& p) override { Do(&Backend::LogProbs, p); }

  kernels::HostStream* host_stream() override { return this; }

 private:
  template <typename Params>
  void Do(void (Backend::*op)(const Params&), const Params& params) {
    if (mode_ == EncodeMode::kCapture) {
      captured_.push_back([op, params](Backend& backend) { (backend.*op)(params); });
      return;
    }
    if (mode_ == EncodeMode::kRun) ++notes_->ops;
    ((*inner_).*op)(params);
  }

  void Enqueue(std::function<absl::Status(Deadline)> work) override {
    if (mode_ == EncodeMode::kCapture) {
      captured_.push_back([work](Backend& backend) { backend.host_stream()->Enqueue(work); });
      return;
    }
    inner_->host_stream()->Enqueue(std::move(work));
  }

  void Open(int access) {
    for (const auto& [at, bytes] : *device_) TANDEM_CHECK(mprotect(at, bytes, access) == 0);
  }
  bool IsHost(const void* at) const {
    for (const auto& [begin, bytes] : *host_) {
      if (at >= begin && at < begin + bytes) return true;
    }
    return false;
  }

  const FakeDeviceOptions options_;
  const std::shared_ptr<FakeDeviceNotes> notes_;
  const std::unique_ptr<Backend> inner_;
  const std::shared_ptr<Ranges> device_ = std::make_shared<Ranges>();
  const std::shared_ptr<Ranges> host_ = std::make_shared<Ranges>();
  std::vector<Buffer> weights_;
  std::function<void(std::span<const std::byte> part)> copied_;
  EncodeMode mode_ = EncodeMode::kRun;
  std::vector<EncodedOp> captured_;
};

}  // namespace

std::unique_ptr<Backend> MakeFakeDevice(const FakeDeviceOptions& options,
                                        std::shared_ptr<FakeDeviceNotes> notes) {
  return std::make_unique<FakeDevice>(options, std::move(notes));
}

void RegisterFakeDevice(const FakeDeviceOptions& options, std::shared_ptr<FakeDeviceNotes> notes) {
  kernels::RegisterCuda([options, notes](const kernels::BackendOptions&) {
    return absl::StatusOr<std::unique_ptr<Backend>>(MakeFakeDevice(options, notes));
  });
}

}  // namespace tandem::worker
