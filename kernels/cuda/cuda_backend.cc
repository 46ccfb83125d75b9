#include "kernels/cuda/cuda_backend.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/poll_pause.h"
#include "common/base/status.h"
#include "common/base/step_guard.h"
#include "common/base/strings.h"
#include "kernels/check_weight.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/memory.h"
#include "kernels/cuda/ops.h"

namespace tandem::kernels::cuda {
namespace {

// How long a stream may take to drain after its collectives were cancelled.
constexpr auto kDrainTimeout = std::chrono::seconds(10);
constexpr auto kZeroTimeout = std::chrono::minutes(1);
constexpr uint8_t kPoison = 0xff;

class CudaGraph : public Graph {
 public:
  CudaGraph(cudaGraphExec_t exec, std::shared_ptr<const void> counted)
      : exec_(exec), counted_(std::move(counted)) {}
  ~CudaGraph() override { cudaGraphExecDestroy(exec_); }
  cudaGraphExec_t exec() const { return exec_; }

 private:
  const cudaGraphExec_t exec_;
  const std::shared_ptr<const void> counted_;
};

}  // namespace

CudaBackend::~CudaBackend() {
  while (!in_flight_.empty()) CudaBackend::Wait({in_flight_.front().number}).IgnoreError();
  if (stream_.handle() != nullptr && broken_.ok()) cudaStreamSynchronize(stream_.handle());
  for (const cudaEvent_t mark : marks_) {
    if (mark != nullptr) cudaEventDestroy(mark);
  }
  if (zeroed_ != nullptr) cudaEventDestroy(zeroed_);
}

absl::Status CudaBackend::Open() {
  TANDEM_CUDA_RETURN_IF_ERROR(stream_.Create());
  for (cudaEvent_t& mark : marks_) {
    TANDEM_CUDA_RETURN_IF_ERROR(cudaEventCreateWithFlags(&mark, cudaEventDisableTiming));
  }
  TANDEM_CUDA_RETURN_IF_ERROR(cudaEventCreateWithFlags(&zeroed_, cudaEventDisableTiming));
  TANDEM_ASSIGN_OR_RETURN(gemm_, MakeDenseGemm());
  upload_ = std::make_unique<WeightUpload>(stream_.handle());
  return absl::OkStatus();
}

// --- memory ---

absl::StatusOr<Buffer> CudaBackend::Allocate(size_t bytes) {
  NoteBlockingCall("Backend::Allocate");
  TANDEM_ASSIGN_OR_RETURN(Buffer buffer, AllocateDevice(bytes));
  TANDEM_CUDA_RETURN_IF_ERROR(cudaMemsetAsync(buffer.data(), 0, buffer.bytes(), stream_.handle()));
  TANDEM_CUDA_RETURN_IF_ERROR(cudaEventRecord(zeroed_, stream_.handle()));
  TANDEM_RETURN_IF_ERROR(WaitForMark(zeroed_, Deadline::After(kZeroTimeout)));
  return buffer;
}

absl::StatusOr<Buffer> CudaBackend::AllocateHost(size_t bytes) {
  NoteBlockingCall("Backend::AllocateHost");
  return AllocatePinned(bytes);
}

absl::StatusOr<Weight> CudaBackend::PlaceWeight(const Weight& host) {
  NoteBlockingCall("Backend::PlaceWeight");
  if (!tensor::Traits(host.type).supported) {
    return absl::UnimplementedError(absl::StrCat("backend ", name_, " cannot compute with ",
                                                 Sv(tensor::Name(host.type)), " weights"));
  }
  TANDEM_RETURN_IF_ERROR(CheckWeightShape(host));
  TANDEM_RETURN_IF_ERROR(CheckWeightScales(host));
  weights_.emplace_back();
  absl::StatusOr<Weight> placed = upload_->Place(host, weights_.back());
  if (!placed.ok()) weights_.pop_back();
  return placed;
}

void CudaBackend::OnCopied(std::function<void(std::span<const std::byte> part)> copied) {
  upload_->OnCopied(std::move(copied));
}

std::optional<DeviceMemory> CudaBackend::Memory() {
  size_t free_bytes = 0, total_bytes = 0;
  if (cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess) return std::nullopt;
  return DeviceMemory{.total_bytes = total_bytes, .free_bytes = free_bytes};
}

// --- phases ---

void CudaBackend::PoisonBetweenSteps(std::span<std::byte> memory) { poisoned_ = memory; }

void CudaBackend::BeginEncode(EncodeMode mode) {
  const size_t most = mode == EncodeMode::kRun ? kMaxInFlight - 1 : 0;
  TANDEM_CHECK(in_flight_.size() <= most) << "BeginEncode before Wait";
  stream_.Begin(mode == EncodeMode::kPlan);
  noted_ = absl::OkStatus();
  phase_ = mode == EncodeMode::kPlan  ? Phase::kPlanning
           : mode == EncodeMode::kRun ? Phase::kEncoding
                                      : Phase::kCapturing;
  if (mode == EncodeMode::kRun && poisoned_.has_value()) {
    stream_.Fill(poisoned_->data(), kPoison, poisoned_->size());
    stream_.Fill(scratch_.data(), kPoison, scratch_.bytes());
  }
  if (mode != EncodeMode::kCapture) return;
  stream_.Note(cudaStreamBeginCapture(stream_.handle(), cudaStreamCaptureModeThreadLocal),
               "begin of a capture");
}

absl::StatusOr<size_t> CudaBackend::FinishPlan() {
  TANDEM_CHECK(phase_ == Phase::kPlanning) << "FinishPlan outside a plan pass";
  NoteBlockingCall("Backend::FinishPlan");
  phase_ = Phase::kIdle;
  TANDEM_RETURN_IF_ERROR(EncodingError());
  TANDEM_RETURN_IF_ERROR(ReserveScratch(stream_.wanted_scratch()));
  return scratch_.bytes() + gemm_->workspace_bytes();
}

absl::Status CudaBackend::ReserveScratch(size_t bytes) {
  if (bytes <= scratch_.bytes()) return absl::OkStatus();
  if (const long graphs = graphs_.use_count() - 1; graphs > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("a plan needs ", bytes, " bytes of scratch, but ", graphs,
                     " graphs point into the ", scratch_.bytes(), " that there are"));
  }
  scratch_ = Buffer();
  TANDEM_ASSIGN_OR_RETURN(scratch_, AllocateDevice(bytes));
  stream_.SetScratch(scratch_.data(), scratch_.bytes());
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Graph>> CudaBackend::Finish() {
  TANDEM_CHECK(phase_ == Phase::kCapturing) << "Finish outside a capture";
  NoteBlockingCall("GraphCapture::Finish");
  phase_ = Phase::kIdle;
  cudaGraph_t graph = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(stream_.handle(), &graph);
  const absl::Cleanup discard = [&] {
    if (graph != nullptr) cudaGraphDestroy(graph);
  };
  TANDEM_RETURN_IF_ERROR(EncodingError());
  TANDEM_CUDA_RETURN_IF_ERROR(ended);
  cudaGraphExec_t exec = nullptr;
  const cudaError_t made = cudaGraphInstantiate(&exec, graph, 0);
  TANDEM_CUDA_RETURN_IF_ERROR(made);
  auto captured = std::make_unique<CudaGraph>(exec, graphs_);
  TANDEM_CUDA_RETURN_IF_ERROR(cudaGraphUpload(exec, stream_.handle()));
  return captured;
}

void CudaBackend::Replay(const Graph& graph) {
  if (stream_.planning() || !stream_.error().empty()) return;
  stream_.Note(cudaGraphLaunch(static_cast<const CudaGraph&>(graph).exec(), stream_.handle()),
               "launch of a graph");
}

absl::Status CudaBackend::EncodingError() const {
  if (!noted_.ok()) return noted_;
  return stream_.error().empty() ? absl::OkStatus() : absl::InternalError(stream_.error());
}

void CudaBackend::NoteError(const absl::Status& error) {
  if (error.ok()) return;
  FailInFlight(error);  // the communicator has cancelled their work too
  if (!stream_.error().empty()) return;
  noted_ = error;
  stream_.NoteError(std::string(error.message()));
}

absl::StatusOr<Ticket> CudaBackend::Submit(Deadline deadline) {
  TANDEM_CHECK(phase_ == Phase::kEncoding) << "Submit without BeginEncode(kRun)";
  phase_ = Phase::kIdle;
  TANDEM_RETURN_IF_ERROR(broken_);
  const uint64_t number = ++last_number_;
  const cudaEvent_t mark = marks_[number % kMaxInFlight];
  stream_.Note(cudaEventRecord(mark, stream_.handle()), "mark of the step's end");
  if (absl::Status error = EncodingError(); !error.ok()) {
    WaitForMark(mark, deadline).IgnoreError();  // launched work still uses the caller's buffers
    return error;
  }
  in_flight_.push_back(
      {.number = number, .mark = mark, .deadline = deadline, .time = deadline.Left()});
  return Ticket{number};
}

bool CudaBackend::IsOldest(Ticket ticket) const {
  return !in_flight_.empty() && in_flight_.front().number == ticket.number;
}

bool CudaBackend::Done(Ticket ticket) {
  if (!IsOldest(ticket) || !broken_.ok()) return true;
  const Submission& oldest = in_flight_.front();
  if (oldest.error.ok() && cudaEventQuery(oldest.mark) == cudaErrorNotReady) {
    if (absl::Status reason = GiveUp(oldest.deadline); !reason.ok()) FailInFlight(reason);
    return !oldest.error.ok();
  }
  return true;
}

absl::Status CudaBackend::Wait(Ticket ticket) {
  NoteBlockingCall("Backend::Wait");
  if (!IsOldest(ticket)) {
    return absl::FailedPreconditionError("Wait: not the oldest submission in flight");
  }
  const Submission& oldest = in_flight_.front();
  const absl::Status done = WaitForMark(oldest.mark, oldest.deadline, oldest.error);
  in_flight_.pop_front();
  if (!in_flight_.empty()) {
    Submission& next = in_flight_.front();
    next.deadline = Deadline::After(next.time, next.deadline.clock());
  }
  return done;
}

absl::Status CudaBackend::GiveUp(Deadline deadline) {
  if (watch_ != nullptr) TANDEM_RETURN_IF_ERROR(watch_->Check());
  if (!deadline.Passed()) return absl::OkStatus();
  return absl::DeadlineExceededError("the step did not finish on the GPU in time");
}

absl::Status CudaBackend::WaitForMark(cudaEvent_t mark, Deadline deadline, absl::Status reason) {
  // Work that only follows a failed one may be sound, and has its time.
  const bool preset = !reason.ok();
  std::optional<Deadline> drained_by;
  for (const PollPause pause; broken_.ok(); pause()) {
    const cudaError_t state = cudaEventQuery(mark);
    if (state == cudaSuccess) break;
    if (state != cudaErrorNotReady) {
      broken_ = CudaStatus(state, "a kernel of the step", name_.c_str(), 0);
    } else if (drained_by.has_value() && drained_by->Passed()) {
      broken_ = absl::InternalError(absl::StrCat("the GPU does not finish: ", reason.message()));
      reason = broken_;
    } else if (reason.ok()) {
      reason = GiveUp(deadline);
    }
    if (!reason.ok() && !drained_by.has_value()) {
      if (watch_ != nullptr) watch_->Cancel(reason);
      const Duration time_left = preset ? deadline.Left() : Duration::zero();
      drained_by = Deadline::After(std::max<Duration>(time_left, kDrainTimeout));
    }
  }
  if (reason.ok()) reason = broken_;
  if (!reason.ok()) FailInFlight(reason);
  return reason;
}

void CudaBackend::FailInFlight(const absl::Status& reason) {
  for (Submission& submission : in_flight_) {
    if (submission.error.ok()) submission.error = reason;
  }
}

// --- copies and ops ---

void CudaBackend::Upload(void* device, const void* host, size_t bytes) {
  stream_.Copy(device, host, bytes, cudaMemcpyHostToDevice);
}
void CudaBackend::Download(void* host, const void* device, size_t bytes) {
  stream_.Copy(host, device, bytes, cudaMemcpyDeviceToHost);
}

namespace {

struct CudaOps {
  Stream& stream;
  DenseGemm& gemm;

  template <class Params>
  void operator()(const Params& params) const {
    EncodeOp(stream, params);
  }
  template <Composite Params>
  void operator()(const Params& params) const {
    EncodeOp(stream, gemm, params);
  }
  void operator()(const MatMulParams& params) const { EncodeOp(stream, gemm, params); }
};

}  // namespace

void CudaBackend::Encode(const Op& op) { std::visit(CudaOps{stream_, *gemm_}, op); }

}  // namespace tandem::kernels::cuda
