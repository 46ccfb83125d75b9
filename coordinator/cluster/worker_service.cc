#include "coordinator/cluster/worker_service.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <deque>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/address.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "common/base/strings.h"
#include "common/rpc/keepalive.h"
#include "common/rpc/server_credentials.h"
#include "common/step/protocol_version.h"
#include "coordinator/cluster/worker_identity.h"
#include "coordinator/listener/descriptor_limit.h"
#include "coordinator/listener/refusal_log.h"
#include "proto/tandem/v1/worker.grpc.pb.h"

namespace tandem::coordinator {
namespace {

// Bound of the send queue; a worker that does not read is disconnected rather than buffered for.
constexpr size_t kMaxPendingWrites = 256;

// A worker has its call from the beginning to the end: without one a connection takes a place that
// a worker may need.
constexpr int kStrangerMillis = 5'000;

// Compares all bytes, so that the time does not tell how many agree.
bool SameToken(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

constexpr TlsFlags kTlsFlags{
    .cert = "--worker-tls-cert", .key = "--worker-tls-key", .ca = "--worker-tls-ca"};

std::vector<std::string> NamesOf(const grpc::CallbackServerContext& context) {
  std::vector<std::string> names;
  for (const grpc::string_ref& name :
       context.auth_context()->FindPropertyValues(GRPC_X509_SAN_PROPERTY_NAME)) {
    names.emplace_back(name.data(), name.size());
  }
  return names;
}

}  // namespace

// The callback service and one reactor per stream. Each reactor's state has its own mutex.
class WorkerService::Impl : public v1::WorkerControl::CallbackService {
 public:
  explicit Impl(WorkerService* service) : service_(service) {}

  grpc::ServerBidiReactor<v1::WorkerMessage, v1::CoordinatorMessage>* Connect(
      grpc::CallbackServerContext* context) override;

 private:
  // Who calls, by certificate and token.
  absl::StatusOr<WorkerIdentity> Identify(const grpc::CallbackServerContext& context) const;

  class Stream;
  WorkerService* const service_;
  RefusalLog refusals_{Clock::System(), "--worker-listen"};
};

class WorkerService::Impl::Stream
    : public grpc::ServerBidiReactor<v1::WorkerMessage, v1::CoordinatorMessage> {
 public:
  // Of a stranger nothing is read, so that it cannot make the coordinator hold its bytes.
  Stream(WorkerRegistry& registry, RefusalLog& refusals, grpc::CallbackServerContext* context,
         const absl::StatusOr<WorkerIdentity>& identity)
      : registry_(registry),
        refusals_(refusals),
        peer_(context->peer()),
        writer_(new Writer(this, context)) {
    if (identity.ok()) {
      identity_ = *identity;
      StartRead(&incoming_);
    } else {
      Refuse(identity.status());
    }
  }

  void OnReadDone(bool ok) override {
    if (!ok) return ReadEnded();
    if (link_ == nullptr) {
      if (!Greet()) return;
    } else {
      registry_.Handle(link_, std::move(incoming_));
    }
    incoming_.Clear();
    StartRead(&incoming_);
  }

  void OnWriteDone(bool ok) override { writer_->WriteDone(ok); }

  void OnDone() override {
    writer_->Detach();
    if (link_ != nullptr) {
      CloseLink();
      registry_.Release(link_);
    }
    delete this;
  }

 private:
  // The sending half, shared with the link, which may outlive the stream.
  class Writer {
   public:
    Writer(Stream* stream, grpc::CallbackServerContext* context)
        : stream_(stream), context_(context) {}

    absl::Status Send(v1::CoordinatorMessage message) {
      MutexLock lock(mutex_);
      if (stream_ == nullptr || finishing_) {
        return absl::UnavailableError("control connection lost");
      }
      if (pending_.size() >= kMaxPendingWrites) {
        return absl::UnavailableError("worker does not read its control connection");
      }
      pending_.push_back(std::move(message));
      if (pending_.size() == 1) stream_->StartWrite(&pending_.front());
      return absl::OkStatus();
    }
    void WriteDone(bool ok) {
      MutexLock lock(mutex_);
      pending_.pop_front();
      if (!ok) pending_.clear();
      if (!pending_.empty()) {
        stream_->StartWrite(&pending_.front());
      } else if (finishing_) {
        stream_->DoFinish(final_);
      }
    }
    // Ends the call once the queue is written.
    void Finish(const grpc::Status& status) {
      MutexLock lock(mutex_);
      if (finishing_ || stream_ == nullptr) return;
      finishing_ = true;
      final_ = status;
      if (pending_.empty()) stream_->DoFinish(final_);
    }
    // Ends the call; what waits is not written.
    void Drop() {
      Finish(grpc::Status::OK);
      MutexLock lock(mutex_);
      if (stream_ != nullptr && !pending_.empty()) context_->TryCancel();
    }
    // Ends the call without a word to the worker.
    void Cancel() {
      MutexLock lock(mutex_);
      if (stream_ != nullptr) context_->TryCancel();
    }
    void Detach() {
      MutexLock lock(mutex_);
      stream_ = nullptr;
    }

   private:
    Mutex mutex_;
    Stream* stream_ TANDEM_GUARDED_BY(mutex_);    // null once the call is done
    grpc::CallbackServerContext* const context_;  // lives as long as the call
    std::deque<v1::CoordinatorMessage> pending_ TANDEM_GUARDED_BY(mutex_);  // front is on the wire
    bool finishing_ TANDEM_GUARDED_BY(mutex_) = false;
    grpc::Status final_ TANDEM_GUARDED_BY(mutex_);
  };

  void DoFinish(const grpc::Status& status) { Finish(status); }

  // The worker is gone, or going. A write under way may hold OnDone up: the link ends first, since
  // it can send nothing any more.
  void ReadEnded() {
    if (link_ != nullptr) CloseLink();
    writer_->Drop();
  }
  void CloseLink() { link_->CloseFromStream(absl::UnavailableError("control connection lost")); }

  // The first message. False if the worker is rejected.
  bool Greet() {
    std::shared_ptr<WorkerLink> link;
    absl::Status admitted =
        absl::InvalidArgumentError("the first message of a worker must be Hello");
    if (incoming_.has_hello()) admitted = SetRank(*incoming_.mutable_hello());
    if (admitted.ok()) {
      link = std::make_shared<WorkerLink>(
          std::move(*incoming_.mutable_hello()),
          [writer = writer_](v1::CoordinatorMessage message) {
            return writer->Send(std::move(message));
          },
          [writer = writer_] { writer->Cancel(); });
      admitted = registry_.Admit(link);
    }
    if (!admitted.ok()) {
      Refuse(admitted);
      return false;
    }
    link_ = std::move(link);
    return true;
  }

  // The rank that the certificate is of.
  absl::Status SetRank(v1::Hello& hello) const {
    const std::optional<int> asked = hello.has_rank() ? std::optional(hello.rank()) : std::nullopt;
    TANDEM_ASSIGN_OR_RETURN(const std::optional<int> rank, identity_.Admit(asked));
    if (rank.has_value()) hello.set_rank(*rank);
    return absl::OkStatus();
  }

  void Refuse(const absl::Status& reason) {
    refusals_.Add(absl::StrCat("a worker of ", peer_), StdSv(reason.message()));
    v1::CoordinatorMessage refusal;
    refusal.mutable_refused()->set_reason(std::string(reason.message()));
    refusal.mutable_refused()->set_retry(absl::IsAlreadyExists(reason));
    writer_->Send(std::move(refusal)).IgnoreError();
    writer_->Finish(grpc::Status::OK);
  }

  WorkerRegistry& registry_;
  RefusalLog& refusals_;
  const std::string peer_;
  std::shared_ptr<Writer> writer_;
  v1::WorkerMessage incoming_;
  std::shared_ptr<WorkerLink> link_;  // null until Hello
  WorkerIdentity identity_{};
};

grpc::ServerBidiReactor<v1::WorkerMessage, v1::CoordinatorMessage>* WorkerService::Impl::Connect(
    grpc::CallbackServerContext* context) {
  // Deletes itself in OnDone.
  return new Stream(service_->registry_, refusals_, context, Identify(*context));
}

absl::StatusOr<WorkerIdentity> WorkerService::Impl::Identify(
    const grpc::CallbackServerContext& context) const {
  const auto& headers = context.client_metadata();
  const auto found = headers.find(step::kWorkerTokenHeader);
  if (found == headers.end() ||
      !SameToken({found->second.data(), found->second.size()}, service_->options_.token)) {
    return absl::UnauthenticatedError("worker token does not match");
  }
  if (service_->tls_ == nullptr) return WorkerIdentity();
  return WorkerIdentity::FromNames(NamesOf(context));
}

WorkerService::WorkerService(Options options)
    : options_(std::move(options)), registry_(options_.size, options_.one_host) {}

WorkerService::~WorkerService() {
  if (server_ == nullptr) return;
  acceptor_->Stop();
  server_->Shutdown(std::chrono::system_clock::now());
}

absl::StatusOr<std::unique_ptr<WorkerService>> WorkerService::Start(const Options& options) {
  if (!IsLoopback(options.listen) && options.tls.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--worker-listen must be a loopback address without TLS, got '", options.listen, "'"));
  }
  std::unique_ptr<WorkerService> service(new WorkerService(options));
  service->impl_ = std::make_unique<Impl>(service.get());
  if (!options.tls.empty()) {
    TANDEM_ASSIGN_OR_RETURN(service->tls_, TlsIdentity::Open(kTlsFlags, options.tls));
  }
  TANDEM_ASSIGN_OR_RETURN(net::ListenSocket socket,
                          net::ListenSocket::Bind("--worker-listen", options.listen));
  service->address_ = socket.address();
  grpc::ServerBuilder builder;
  service->acceptor_.emplace(builder, "--worker-listen", kControlKeepalive,
                             MakeServerCredentials(service->tls_.get(), /*check=*/nullptr),
                             kStrangerMillis);
  builder.SetMaxReceiveMessageSize(-1);  // of workers that have shown the token
  builder.RegisterService(service->impl_.get());
  service->server_ = builder.BuildAndStart();
  if (service->server_ == nullptr) return absl::InternalError("the gRPC server does not start");
  service->acceptor_->Start(std::move(socket),
                            static_cast<size_t>(options.size) + kSpareWorkerConnections);
  return service;
}

}  // namespace tandem::coordinator
