#include "kernels/host/host_backend.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status.h"
#include "common/base/step_guard.h"
#include "common/base/strings.h"
#include "kernels/check_weight.h"
#include "kernels/host/memory.h"

namespace tandem::kernels::host {
namespace {

// A bound for one list of work that reads the disk.
constexpr auto kWorkBetweenSteps = std::chrono::minutes(10);

}  // namespace

HostBackend::HostBackend(std::string name, uint32_t threads, const CpuSet& cpus)
    : name_(std::move(name)), list_(threads), stream_(threads, cpus) {}

absl::StatusOr<Buffer> HostBackend::Allocate(size_t bytes) {
  NoteBlockingCall("Backend::Allocate");
  return AllocatePages(bytes);
}

absl::StatusOr<Weight> HostBackend::PlaceWeight(const Weight& host) {
  NoteBlockingCall("Backend::PlaceWeight");
  if (!CanCompute(host.type)) {
    return absl::UnimplementedError(absl::StrCat("backend ", name_, " cannot compute with ",
                                                 Sv(tensor::Name(host.type)), " weights"));
  }
  TANDEM_RETURN_IF_ERROR(CheckWeightShape(host));
  TANDEM_RETURN_IF_ERROR(CheckWeightScales(host));
  return host;
}

absl::Status HostBackend::RunBetweenSteps(const OpList& list) {
  TANDEM_CHECK(phase_ == Phase::kIdle) << "during a step";
  stream_.Start(list, {}, Deadline::After(kWorkBetweenSteps));
  return stream_.Wait();
}

void HostBackend::BeginEncode(EncodeMode mode) {
  TANDEM_CHECK(phase_ != Phase::kRunning) << "BeginEncode before Wait";
  TANDEM_CHECK(mode != EncodeMode::kCapture) << "graphs are for devices";
  phase_ = mode == EncodeMode::kPlan ? Phase::kPlanning : Phase::kEncoding;
  list_.Clear(mode);
}

size_t HostBackend::ScratchBytes(const ScratchSize& size) const {
  return size.shared + size.per_thread * list_.threads();
}

absl::StatusOr<size_t> HostBackend::FinishPlan() {
  TANDEM_CHECK(phase_ == Phase::kPlanning) << "FinishPlan outside a plan pass";
  NoteBlockingCall("Backend::FinishPlan");
  phase_ = Phase::kIdle;
  const ScratchSize wanted{std::max(reserved_.shared, list_.scratch().shared),
                           std::max(reserved_.per_thread, list_.scratch().per_thread)};
  const size_t bytes = ScratchBytes(wanted);
  if (bytes > scratch_.bytes()) {
    TANDEM_ASSIGN_OR_RETURN(scratch_, AllocatePages(bytes));
  }
  reserved_ = wanted;
  return bytes;
}

absl::StatusOr<Ticket> HostBackend::Submit(Deadline deadline) {
  TANDEM_CHECK(phase_ == Phase::kEncoding) << "Submit without BeginEncode(kRun)";
  const ScratchSize needed = list_.scratch();
  if (needed.shared > reserved_.shared || needed.per_thread > reserved_.per_thread) {
    phase_ = Phase::kIdle;
    return absl::FailedPreconditionError(absl::StrCat(
        "the step needs ", ScratchBytes(needed), " bytes of scratch (", needed.shared, " shared, ",
        needed.per_thread, " per thread), the plan pass reserved ", ScratchBytes(reserved_)));
  }
  phase_ = Phase::kRunning;
  stream_.Start(list_, {scratch_.data(), scratch_.data() + reserved_.shared, reserved_.per_thread},
                deadline);
  return Ticket{++submitted_};
}

absl::Status HostBackend::Wait(Ticket ticket) {
  NoteBlockingCall("Backend::Wait");
  if (phase_ != Phase::kRunning || ticket.number != submitted_) {
    return absl::FailedPreconditionError("Wait: not the oldest submission in flight");
  }
  phase_ = Phase::kIdle;
  return stream_.Wait();
}

void HostBackend::Enqueue(std::function<absl::Status(Deadline)> work) {
  list_.AddWork("host work", std::move(work));
}

namespace {

struct CopyTask {
  std::byte* to;
  const std::byte* from;
  size_t bytes;
};

constexpr size_t kCopyBytesPerTask = size_t{1} << 20;

void RunCopy(const CopyTask& copy, const TaskContext& context) {
  const size_t begin = context.task * kCopyBytesPerTask;
  std::memcpy(copy.to + begin, copy.from + begin, std::min(kCopyBytesPerTask, copy.bytes - begin));
}

}  // namespace

void HostBackend::Copy(void* to, const void* from, size_t bytes) {
  const size_t tasks = (bytes + kCopyBytesPerTask - 1) / kCopyBytesPerTask;
  list_.Add("copy", static_cast<uint32_t>(tasks), &RunCopy,
            CopyTask{static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes});
}

}  // namespace tandem::kernels::host
