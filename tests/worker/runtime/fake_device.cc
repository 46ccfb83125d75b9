#include "tests/worker/runtime/fake_device.h"

#include <sys/mman.h>

#include <cstring>
#include <deque>
#include <span>
#include <variant>

#include "absl/strings/str_cat.h"
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

using EncodedOps = std::vector<std::function<void(Backend&)>>;

struct FakeGraph : kernels::Graph {
  EncodedOps ops;
};

struct Submission {
  kernels::Ticket ticket;
  EncodedOps ops;
  Deadline deadline;
  absl::Status error{};  // of one before it
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
    notes_->weight_rows += uint64_t{host.rows} * host.count;
    weights_.push_back(std::move(copy));
    return placed;
  }

  uint64_t PlacedBytes(const kernels::Weight& weight) const override {
    return Backend::PlacedBytes(weight) +
           uint64_t{weight.rows} * weight.count * options_.row_padding;
  }

  void OnCopied(std::function<void(std::span<const std::byte> part)> copied) override {
    copied_ = std::move(copied);
  }

  uint32_t max_in_flight() const override { return 2; }
  void BeginEncode(EncodeMode mode) override {
    TANDEM_CHECK(in_flight_.size() < (mode == EncodeMode::kRun ? max_in_flight() : 1));
    mode_ = mode;
    planned_ops_ = 0;
    encoded_.clear();
    if (mode == EncodeMode::kPlan) inner_->BeginEncode(mode);
  }
  absl::StatusOr<size_t> FinishPlan() override { return inner_->FinishPlan(); }
  absl::StatusOr<std::unique_ptr<kernels::Graph>> Finish() override {
    TANDEM_CHECK(mode_ == EncodeMode::kCapture);
    ++notes_->captures;
    auto graph = std::make_unique<FakeGraph>();
    graph->ops = std::exchange(encoded_, {});
    return graph;
  }
  uint64_t PlannedNodes() const override { return planned_ops_; }
  void Replay(const kernels::Graph& graph) override {
    ++notes_->replays;
    encoded_.push_back([&ops = static_cast<const FakeGraph&>(graph).ops](Backend& backend) {
      for (const auto& op : ops) op(backend);
    });
  }
  absl::StatusOr<kernels::Ticket> Submit(Deadline deadline) override {
    if (options_.blocks_in_submit) NoteBlockingCall("FakeDevice::Submit");
    TANDEM_RETURN_IF_ERROR(notes_->broken);
    const kernels::Ticket ticket{++last_number_};
    notes_->calls.push_back(absl::StrCat("submit ", ticket.number));
    notes_->deadlines.push_back(deadline.when());
    in_flight_.push_back(
        {.ticket = ticket, .ops = std::exchange(encoded_, {}), .deadline = deadline});
    return ticket;
  }
  bool Done(kernels::Ticket) override { return !notes_->busy || !notes_->busy(); }
  absl::Status Wait(kernels::Ticket ticket) override {
    TANDEM_CHECK(!in_flight_.empty() && in_flight_.front().ticket.number == ticket.number);
    notes_->calls.push_back(absl::StrCat("wait ", ticket.number));
    const Submission oldest = std::move(in_flight_.front());
    in_flight_.pop_front();
    TANDEM_RETURN_IF_ERROR(oldest.error);
    Open(PROT_READ | PROT_WRITE);
    inner_->BeginEncode(EncodeMode::kRun);
    for (const auto& op : oldest.ops) op(*inner_);
    absl::Status status = inner_->SubmitAndWait(oldest.deadline);
    Open(PROT_NONE);
    if (!notes_->broken_wait.ok()) status = notes_->broken_wait;
    for (Submission& later : in_flight_) later.error = status;
    return status;
  }

  absl::Status Broken() const override { return notes_->broken; }

  void Upload(void* device, const void* host, size_t bytes) override {
    TANDEM_CHECK(mode_ != EncodeMode::kCapture) << "copies do not belong in a graph";
    notes_->uploads.push_back({bytes, IsHost(host)});
    Add([=](Backend& backend) { backend.Upload(device, host, bytes); });
  }
  void Download(void* host, const void* device, size_t bytes) override {
    TANDEM_CHECK(mode_ != EncodeMode::kCapture) << "copies do not belong in a graph";
    notes_->downloads.push_back({bytes, IsHost(host)});
    Add([=](Backend& backend) { backend.Download(host, device, bytes); });
  }

  void Encode(const kernels::Op& op) override {
    if (mode_ == EncodeMode::kPlan) {
      ++planned_ops_;
      const auto* const embed = std::get_if<kernels::EmbedParams>(&op);
      if (embed != nullptr) notes_->planned_tokens.insert(embed->tokens);
    }
    if (mode_ == EncodeMode::kRun) {
      ++notes_->ops;
      kernels::ForEachPointer(op, OnDevice{*device_, kernels::OpName(op)});
    }
    Add([op](Backend& backend) { backend.Encode(op); });
  }

  kernels::HostStream* host_stream() override { return this; }
  kernels::GraphCapture* graphs() override { return options_.graphs ? this : nullptr; }
  kernels::WeightCopy* weight_copy() override { return this; }

 private:
  void Enqueue(std::function<absl::Status(Deadline)> work) override {
    Add([work = std::move(work)](Backend& backend) { backend.host_stream()->Enqueue(work); });
  }

  // Plans at once, runs later.
  void Add(std::function<void(Backend&)> op) {
    if (mode_ == EncodeMode::kPlan) return op(*inner_);
    encoded_.push_back(std::move(op));
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
  EncodedOps encoded_;
  uint64_t last_number_ = 0;
  std::deque<Submission> in_flight_;
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
