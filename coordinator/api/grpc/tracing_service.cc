#include "coordinator/api/grpc/tracing_service.h"

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/base/version.h"
#include "coordinator/api/grpc/refused_call.h"
#include "coordinator/api/grpc/retry_hint.h"
#include "coordinator/api/grpc/trace_form.h"
#include "coordinator/api/grpc/wire.h"

namespace tandem::coordinator {
namespace {

constexpr double kMostSeconds = 60;
constexpr auto kPeriod = std::chrono::milliseconds(100);  // between messages

absl::StatusOr<Duration> LengthOf(const grpc::ByteBuffer& bytes) {
  v1::TraceRequest request;
  TANDEM_RETURN_IF_ERROR(Parse(bytes, request));
  const double seconds = request.seconds();
  if (!(seconds > 0 && seconds <= kMostSeconds)) {
    return absl::InvalidArgumentError(
        absl::StrCat("seconds is ", seconds, ", it must be above 0 and at most ", kMostSeconds));
  }
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

grpc::Status ShuttingDown() {
  return {grpc::StatusCode::UNAVAILABLE, "the server is shutting down"};
}

// Cancels a call at a time, unless it is done by then.
class TimeLimit {
 public:
  TimeLimit(grpc::CallbackServerContext& context, std::chrono::system_clock::time_point at)
      : call_(std::make_shared<Guarded>(context)) {
    alarm_.Set(at, [call = call_](bool fired) {
      MutexLock lock(call->mutex);
      if (fired && call->context != nullptr) call->context->TryCancel();
    });
  }
  // The call is done.
  ~TimeLimit() {
    MutexLock lock(call_->mutex);
    call_->context = nullptr;
  }
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;

 private:
  // Shared with the alarm, whose function may run after the alarm is gone.
  struct Guarded {
    explicit Guarded(grpc::CallbackServerContext& of) : context(&of) {}
    Mutex mutex;
    grpc::CallbackServerContext* context TANDEM_GUARDED_BY(mutex);
  };
  const std::shared_ptr<Guarded> call_;
  grpc::Alarm alarm_;
};

}  // namespace

// One recording. It writes what was recorded, sleeps, and writes again, until its time is over: of
// an alarm and a write there is one at a time, and what follows runs after it. State that changes
// is guarded by the service's mutex.
class TracingService::Call : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  Call(TracingService& service, grpc::CallbackServerContext& context, const ServingModel& model,
       TimePoint begin, Duration length, std::unique_ptr<TraceRecorder::Recording> recording)
      : call_(service.serving_.calls),
        service_(service),
        limit_(context, std::chrono::system_clock::now() + length + service.grace_),
        recording_(std::move(recording)),
        start_(begin),
        end_(start_ + length) {
    v1::TraceResponse first;
    v1::TraceStart& start = *first.mutable_start();
    start.set_model(model.name);
    start.set_tensor_parallel_size(model.tensor_parallel_size);
    start.set_version(std::string(BuildVersion()));
    start.set_unix_us(std::chrono::duration_cast<std::chrono::microseconds>(
                          std::chrono::system_clock::now().time_since_epoch())
                          .count());
    start.set_clock_us(static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(start_.time_since_epoch()).count()));
    message_ = Serialize(first);
    StartWrite(&message_);
  }

  // Ends the recording now, with `status`. The service's mutex is held.
  void Stop(const grpc::Status& status) {
    if (stopped_.ok()) stopped_ = status;
    if (alarm_ != nullptr) alarm_->Cancel();
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(service_.mutex_);
    if (!ok) return Finish({grpc::StatusCode::CANCELLED, "the client is gone"});
    const Duration left = stopped_.ok() ? end_ - Clock::System().Now() : Duration::zero();
    alarm_ = std::make_unique<grpc::Alarm>();  // one is for one use
    alarm_->Set(std::chrono::system_clock::now() + std::min<Duration>(left, kPeriod),
                [this](bool) { Write(); });
  }
  void OnCancel() override {
    MutexLock lock(service_.mutex_);
    Stop({grpc::StatusCode::CANCELLED, "the client is gone"});
  }
  void OnDone() override {
    {
      MutexLock lock(service_.mutex_);
      if (service_.running_ == this) service_.running_ = nullptr;  // another may have begun
    }
    delete this;
  }

 private:
  void Write() {
    const auto [last, status] = IsLast();  // before events are taken: none is left behind
    const TraceRecorder::Batch batch = recording_->Take();
    v1::TraceResponse response;
    for (const TraceEvent& event : batch.events) ToProto(event, start_, *response.add_events());
    response.set_num_dropped(batch.num_dropped);
    MutexLock lock(service_.mutex_);
    message_ = Serialize(response);
    if (!last) return StartWrite(&message_);
    recording_.reset();  // another may begin when the client has its answer
    StartWriteAndFinish(&message_, grpc::WriteOptions(), status);
  }

  std::pair<bool, grpc::Status> IsLast() {
    MutexLock lock(service_.mutex_);
    return {Clock::System().Now() >= end_ || !stopped_.ok(), stopped_};
  }

  const OpenCalls::Call call_;
  TracingService& service_;
  const TimeLimit limit_;  // on a client that does not read
  std::unique_ptr<TraceRecorder::Recording> recording_;
  const TimePoint start_, end_;
  grpc::Status stopped_;  // not OK: before its time
  std::unique_ptr<grpc::Alarm> alarm_;
  grpc::ByteBuffer message_;
};

void TracingService::Close() {
  MutexLock lock(mutex_);
  closed_ = true;
  if (running_ != nullptr) running_->Stop(ShuttingDown());
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* TracingService::Trace(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) {
  absl::StatusOr<Serving::Parts*> parts = serving_.Get();
  if (!parts.ok()) return new RefusedStream(Refusal(*context, parts.status()));
  absl::StatusOr<Duration> length = LengthOf(*request);
  if (!length.ok()) return new RefusedStream(ToGrpc(length.status()));
  TraceRecorder* const recorder = (*parts)->recorder;
  if (recorder == nullptr) {
    return new RefusedStream({grpc::StatusCode::UNIMPLEMENTED, "this server records nothing"});
  }
  const TimePoint start = Clock::System().Now();  // no later than the first event
  auto recording = recorder->Start();
  if (!recording.ok()) return new RefusedStream(ToGrpc(recording.status()));
  MutexLock lock(mutex_);
  if (closed_) return new RefusedStream(ShuttingDown());
  // Deletes itself in OnDone, after which there may be another.
  return running_ =
             new Call(*this, *context, (*parts)->model, start, *length, *std::move(recording));
}

}  // namespace tandem::coordinator
