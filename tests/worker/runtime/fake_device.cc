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

bool Contains(const Ranges& ranges, const void* at, size_t bytes) {
  for (const auto& [begin, size] : ranges) {
    if (at >= begin && at < begin + size) {
      return bytes <= size - static_cast<size_t>(static_cast<const std::byte*>(at) - begin);
    }
  }
  return false;
}

// Checks that an op's arrays lie in the device's memory, from the first element to the last.
struct OnDevice {
  const Ranges& device;
  std::string_view op;

  template <class T>
  void operator()(const char* name, const T* pointer, const kernels::Array& array) const {
    if (array.access == kernels::Access::kHost || array.cols == 0) return;
    if (pointer == nullptr && (array.optional || array.span() == 0)) return;
    TANDEM_CHECK(Contains(device, pointer, array.bytes(pointer))) << op << ": " << name;
  }
  void operator()(const char* name, const kernels::Weight& weight) const {
    TANDEM_CHECK(weight.rows == 0 || Contains(device, weight.data, 1)) << op << ": " << name;
  }
};

class FakeDevice final : public Backend,
                         private kernels::HostStream,
                         private kernels::GraphCapture,
                         private kernels::WeightCopy {
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

  void OnCopied(std::function<void(std::span<const std::byte> part)> copied) override {
    copied_ = std::move(copied);
  }

  void BeginEncode(EncodeMode mode) override {
    mode_ = mode;
    planned_ops_ = 0;
    captured_.clear();
    if (mode != EncodeMode::kCapture) inner_->BeginEncode(mode);
  }
  absl::StatusOr<size_t> FinishPlan() override { return inner_->FinishPlan(); }
  absl::StatusOr<std::unique_ptr<kernels::Graph>> Finish() override {
    TANDEM_CHECK(mode_ == EncodeMode::kCapture);
    ++notes_->captures;
    auto graph = std::make_unique<FakeGraph>();
    graph->ops = std::move(captured_);
    return graph;
  }
  uint64_t PlannedNodes() const override { return planned_ops_; }
  void Replay(const kernels::Graph& graph) override {
    ++notes_->replays;
    for (const EncodedOp& op : static_cast<const FakeGraph&>(graph).ops) op(*inner_);
  }
  absl::Status Submit(Deadline deadline) override {
    if (options_.blocks_in_submit) NoteBlockingCall("FakeDevice::Submit");
    TANDEM_RETURN_IF_ERROR(notes_->broken);
    return inner_->Submit(deadline);
  }
  absl::Status Wait() override {
    Open(PROT_READ | PROT_WRITE);
    const absl::Status status = inner_->Wait();
    Open(PROT_NONE);
    TANDEM_RETURN_IF_ERROR(notes_->broken_wait);
    return status;
  }

  absl::Status Broken() const override { return notes_->broken; }

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

  void Encode(const kernels::Op& op) override {
    if (mode_ == EncodeMode::kCapture) {
      captured_.push_back([op](Backend& backend) { backend.Encode(op); });
      return;
    }
    if (mode_ == EncodeMode::kPlan) ++planned_ops_;
    if (mode_ == EncodeMode::kRun) {
      ++notes_->ops;
      kernels::ForEachPointer(op, OnDevice{*device_, kernels::OpName(op)});
    }
    inner_->Encode(op);
  }

  kernels::HostStream* host_stream() override { return this; }
  kernels::GraphCapture* graphs() override { return options_.graphs ? this : nullptr; }
  kernels::WeightCopy* weight_copy() override { return this; }

 private:
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
  bool IsHost(const void* at) const { return Contains(*host_, at, 1); }

  const FakeDeviceOptions options_;
  const std::shared_ptr<FakeDeviceNotes> notes_;
  const std::unique_ptr<Backend> inner_;
  const std::shared_ptr<Ranges> device_ = std::make_shared<Ranges>();
  const std::shared_ptr<Ranges> host_ = std::make_shared<Ranges>();
  std::vector<Buffer> weights_;
  std::function<void(std::span<const std::byte> part)> copied_;
  EncodeMode mode_ = EncodeMode::kRun;
  uint64_t planned_ops_ = 0;
  std::vector<EncodedOp> captured_;
};

}  // namespace

std::unique_ptr<Backend> MakeFakeDevice(const FakeDeviceOptions& options,
                                        std::shared_ptr<FakeDeviceNotes> notes) {
  return std::make_unique<FakeDevice>(options, std::move(notes));
}

void RegisterFakeDevice(const FakeDeviceOptions& options, std::shared_ptr<FakeDeviceNotes> notes) {
  kernels::RegisterCuda([options, notes](int) {
    return absl::StatusOr<std::unique_ptr<Backend>>(MakeFakeDevice(options, notes));
  });
}

}  // namespace tandem::worker
