#include "coordinator/api/grpc/health_service.h"

#include <grpcpp/grpcpp.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/api/grpc/refused_call.h"
#include "coordinator/api/grpc/service_names.h"
#include "coordinator/api/grpc/wire.h"

namespace tandem::coordinator {
namespace {

namespace health = grpc::health::v1;

// Anyone may ask, also without a token.
constexpr size_t kMaxNameBytes = 256;
constexpr size_t kMaxWatchers = 1024;

struct Named {
  const char* name;
  bool (ServerView::*is_serving)() const;
};
// The empty name is the server as a whole; the last three are for probes.
constexpr Named kServices[] = {{"", &ServerView::takes_requests},
                               {kGenerationService, &ServerView::takes_requests},
                               {kVllmEngineService, &ServerView::takes_requests},
                               {"startup", &ServerView::is_started},
                               {"liveness", &ServerView::is_live},
                               {"readiness", &ServerView::is_ready}};

}  // namespace

// One Watch. All state is guarded by the service's mutex.
class HealthService::Watcher : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  Watcher(HealthService& service, std::string name)
      : call_(service.calls_), service_(service), name_(std::move(name)) {
    MutexLock lock(service_.mutex_);
    service_.watchers_.insert(this);
    Advance();
  }

  // Writes the status if it is not the last one written; ends the call when it is over.
  void Advance() TANDEM_NO_THREAD_SAFETY_ANALYSIS {
    if (writing_ || finished_) return;
    const Status status = service_.StatusOf(name_);
    if (!gone_ && status != last_) {
      health::HealthCheckResponse response;
      response.set_status(last_ = status);
      message_ = Serialize(response);
      writing_ = true;
      StartWrite(&message_);
    } else if (gone_ || service_.closed_) {
      finished_ = true;
      Finish(gone_ ? grpc::Status(grpc::StatusCode::CANCELLED, "the client is gone")
                   : grpc::Status(grpc::StatusCode::UNAVAILABLE, "the server is shutting down"));
    }
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(service_.mutex_);
    writing_ = false;
    gone_ |= !ok;
    Advance();
  }
  void OnCancel() override {
    MutexLock lock(service_.mutex_);
    gone_ = true;
    Advance();
  }
  void OnDone() override {
    {
      MutexLock lock(service_.mutex_);
      service_.watchers_.erase(this);
    }
    delete this;
  }

 private:
  const OpenCalls::Call call_;
  HealthService& service_;
  const std::string name_;
  grpc::ByteBuffer message_;
  Status last_ = health::HealthCheckResponse::UNKNOWN;
  bool writing_ = false;
  bool gone_ = false;
  bool finished_ = false;
};

HealthService::HealthService(OpenCalls& calls, ServerState& state) : calls_(calls), state_(state) {
  state_.SetListener([this](const ServerView& view) {
    MutexLock lock(mutex_);
    view_ = view;
    AdvanceAll();
  });
}

HealthService::~HealthService() { state_.SetListener(nullptr); }

HealthService::Status HealthService::StatusOf(const std::string& service) const {
  for (const auto& [name, is_serving] : kServices) {
    if (service != name) continue;
    return (view_.*is_serving)() ? health::HealthCheckResponse::SERVING
                                 : health::HealthCheckResponse::NOT_SERVING;
  }
  return health::HealthCheckResponse::SERVICE_UNKNOWN;
}

void HealthService::AdvanceAll() {
  for (Watcher* watcher : watchers_) watcher->Advance();
}

bool HealthService::HasRoom() {
  MutexLock lock(mutex_);
  return watchers_.size() < kMaxWatchers;
}

void HealthService::Close() {
  MutexLock lock(mutex_);
  closed_ = true;
  AdvanceAll();
}

grpc::ServerUnaryReactor* HealthService::Check(grpc::CallbackServerContext* context,
                                               const grpc::ByteBuffer* request,
                                               grpc::ByteBuffer* response) {
  health::HealthCheckRequest parsed;
  if (absl::Status status = Parse(*request, parsed); !status.ok()) {
    return FinishAtOnce(context, ToGrpc(status));
  }
  health::HealthCheckResponse answer;
  {
    MutexLock lock(mutex_);
    answer.set_status(StatusOf(parsed.service()));
  }
  if (answer.status() == health::HealthCheckResponse::SERVICE_UNKNOWN) {
    return FinishAtOnce(context, {grpc::StatusCode::NOT_FOUND,
                                  absl::StrCat("there is no service '",
                                               parsed.service().substr(0, kMaxNameBytes), "'")});
  }
  *response = Serialize(answer);
  return FinishAtOnce(context, grpc::Status::OK);
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* HealthService::Watch(grpc::CallbackServerContext*,
                                                                 const grpc::ByteBuffer* request) {
  health::HealthCheckRequest parsed;
  const absl::Status status = Parse(*request, parsed);
  if (!status.ok()) return new RefusedStream(ToGrpc(status));
  if (parsed.service().size() > kMaxNameBytes) {
    return new RefusedStream({grpc::StatusCode::INVALID_ARGUMENT,
                              absl::StrCat("the service's name has ", parsed.service().size(),
                                           " bytes, at most ", kMaxNameBytes)});
  }
  if (!HasRoom()) {
    return new RefusedStream({grpc::StatusCode::RESOURCE_EXHAUSTED,
                              absl::StrCat("more than ", kMaxWatchers, " watches")});
  }
  return new Watcher(*this, parsed.service());  // deletes itself in OnDone
}

grpc::ServerUnaryReactor* HealthService::List(grpc::CallbackServerContext* context,
                                              const grpc::ByteBuffer* request,
                                              grpc::ByteBuffer* response) {
  health::HealthListRequest parsed;
  if (absl::Status status = Parse(*request, parsed); !status.ok()) {
    return FinishAtOnce(context, ToGrpc(status));
  }
  health::HealthListResponse answer;
  {
    MutexLock lock(mutex_);
    for (const Named& service : kServices) {
      (*answer.mutable_statuses())[service.name].set_status(StatusOf(service.name));
    }
  }
  *response = Serialize(answer);
  return FinishAtOnce(context, grpc::Status::OK);
}

}  // namespace tandem::coordinator
