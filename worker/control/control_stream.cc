#include "worker/control/control_stream.h"

#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <deque>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/base/queue.h"
#include "common/base/status.h"
#include "common/base/step_guard.h"
#include "common/base/version.h"
#include "common/config/configure_codec.h"
#include "common/rpc/channel_credentials.h"
#include "common/rpc/keepalive.h"
#include "common/step/protocol_version.h"
#include "proto/tandem/v1/worker.grpc.pb.h"
#include "worker/control/epoch_fence.h"

namespace tandem::worker {
namespace {

constexpr size_t kMaxPendingWrites = 256;
constexpr size_t kMaxPendingCommands = 64;
constexpr auto kPutTimeout = std::chrono::seconds(10);
// How often a worker says that it is still dialling.
constexpr auto kDialReport = std::chrono::seconds(5);

// The coordinator's, whatever its address is.
constexpr char kCoordinatorName[] = "tandem-coordinator";
constexpr TlsFlags kTlsFlags{
    .cert = "--worker-tls-cert", .key = "--worker-tls-key", .ca = "--worker-tls-ca"};

// Why the last attempt to connect has failed: a call on a channel that is not connected says so.
std::string LastError(const std::shared_ptr<grpc::Channel>& channel) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kDialReport);
  const auto stub = v1::WorkerControl::NewStub(channel);
  return stub->Connect(&context)->Finish().error_message();
}

bool WaitConnected(grpc::Channel& channel, Deadline deadline) {
  return channel.WaitForConnected(std::chrono::system_clock::now() + deadline.Left());
}

ConfigureCommand ToCommand(const v1::Configure& message) {
  ConfigureCommand command;
  command.invalid = config::FromProto(message, command.config, command.assignment);
  command.epoch = Epoch{message.epoch()};
  return command;
}

// The stream and its reactor. gRPC keeps the reactor alive until OnDone, which the destructor waits
// for.
class GrpcControlStream
    : public ControlStream,
      public grpc::ClientBidiReactor<v1::WorkerMessage, v1::CoordinatorMessage> {
 public:
  explicit GrpcControlStream(std::shared_ptr<grpc::Channel> channel)
      : channel_(std::move(channel)), stub_(v1::WorkerControl::NewStub(channel_)) {}

  ~GrpcControlStream() override {
    context_.TryCancel();
    MutexLock lock(mutex_);
    changed_.Wait(lock, [&]() TANDEM_REQUIRES(mutex_) { return done_; });
  }

  void Open(const Greeting& greeting) {
    v1::WorkerMessage message;
    v1::Hello& hello = *message.mutable_hello();
    hello.set_protocol_version(step::kWorkerProtocolVersion);
    hello.set_build(BuildVersion());
    hello.set_host_id(greeting.host_id);
    hello.set_host_name(greeting.host_name);
    hello.set_device(greeting.device);
    hello.set_pid(getpid());
    if (greeting.rank.has_value()) hello.set_rank(*greeting.rank);
    context_.AddMetadata(step::kWorkerTokenHeader, greeting.token);
    stub_->async()->Connect(&context_, this);
    StartRead(&incoming_);
    Write(std::move(message)).IgnoreError();  // a broken stream is reported to OnDone
    StartCall();
  }

  std::optional<Command> NextCommand(Deadline deadline) override {
    std::optional<Command> command = commands_.Pop(deadline);
    MutexLock lock(mutex_);
    if (stopped_.has_value()) return StopCommand{*stopped_};
    return command;
  }

  absl::Status CheckEpoch(Epoch epoch) const override { return fence_.Check(epoch); }

  absl::Status SendLoading(Epoch epoch, uint64_t done_bytes, uint64_t total_bytes) override {
    v1::WorkerMessage message;
    message.mutable_loading()->set_epoch(epoch.value);
    message.mutable_loading()->set_done_bytes(done_bytes);
    message.mutable_loading()->set_total_bytes(total_bytes);
    return Write(std::move(message));
  }

  absl::Status SendReady(Epoch epoch, const std::vector<uint32_t>& num_blocks,
                         const std::vector<std::string>& memory_plan) override {
    v1::WorkerMessage message;
    v1::Ready& ready = *message.mutable_ready();
    ready.set_epoch(epoch.value);
    for (uint32_t blocks : num_blocks) ready.add_num_blocks(blocks);
    for (const std::string& line : memory_plan) ready.add_memory_plan(line);
    return Write(std::move(message));
  }

  absl::Status SendStarted(Epoch epoch) override {
    v1::WorkerMessage message;
    message.mutable_started()->set_epoch(epoch.value);
    return Write(std::move(message));
  }

  absl::Status SendFailed(Epoch epoch, const absl::Status& status) override {
    v1::WorkerMessage message;
    v1::Failed& failed = *message.mutable_failed();
    failed.set_epoch(epoch.value);
    failed.set_code(static_cast<int>(status.code()));
    failed.set_message(std::string(status.message()));
    return Write(std::move(message));
  }

  absl::Status SendStepResult(std::span<const uint8_t> frame) override {
    v1::WorkerMessage message;
    message.set_step_result(frame.data(), frame.size());
    return Write(std::move(message));
  }

  void OnEpochEnded(EpochEnded callback) override {
    MutexLock lock(callback_mutex_);
    epoch_ended_ = std::move(callback);
  }

  void OnStepFrame(StepFrame callback) override {
    MutexLock lock(callback_mutex_);
    step_frame_ = std::move(callback);
  }

  std::unique_ptr<transport::Rendezvous> MakeRendezvous(Epoch epoch) override;

  // Sends `message` with `call` and waits for its answer, while `epoch` is not over.
  absl::StatusOr<std::string> Ask(uint64_t call, Epoch epoch, v1::WorkerMessage message,
                                  Deadline deadline) {
    NoteBlockingCall("Rendezvous");
    TANDEM_RETURN_IF_ERROR(fence_.Check(epoch));
    TANDEM_RETURN_IF_ERROR(Write(std::move(message)));
    MutexLock lock(mutex_);
    const bool answered = changed_.Wait(lock, deadline, [&]() TANDEM_REQUIRES(mutex_) {
      return answers_.count(call) != 0 || !fence_.Check(epoch).ok();
    });
    if (answers_.count(call) != 0) {
      absl::StatusOr<std::string> answer = std::move(answers_.at(call));
      answers_.erase(call);
      return answer;
    }
    if (answered) return fence_.Check(epoch);
    return absl::DeadlineExceededError("no answer from the coordinator's rendezvous in time");
  }

  uint64_t NextCall() {
    MutexLock lock(mutex_);
    return ++last_call_;
  }

  // --- reactor ---
  void OnReadDone(bool ok) override {
    // OnDone follows, but after a message that could not be parsed only if the call is ended.
    if (!ok) return context_.TryCancel();
    Handle(std::move(incoming_));
    incoming_.Clear();
    StartRead(&incoming_);
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(mutex_);
    pending_.pop_front();
    if (!ok) pending_.clear();
    if (!pending_.empty()) StartWrite(&pending_.front());
  }

  void OnDone(const grpc::Status& status) override {
    Stop(absl::UnavailableError(
        absl::StrCat("control connection ended", status.ok() ? "" : ": ", status.error_message())));
    MutexLock lock(mutex_);
    done_ = true;
    changed_.NotifyAll();
  }

 private:
  absl::Status Write(v1::WorkerMessage message) {
    MutexLock lock(mutex_);
    if (done_) return absl::UnavailableError("the coordinator is gone");
    if (pending_.size() >= kMaxPendingWrites) {
      return absl::UnavailableError("the coordinator does not read its control connection");
    }
    pending_.push_back(std::move(message));
    if (pending_.size() == 1) StartWrite(&pending_.front());
    return absl::OkStatus();
  }

  void Handle(v1::CoordinatorMessage message) {
    switch (message.message_case()) {
      case v1::CoordinatorMessage::kRefused:
        return Stop(absl::Status(message.refused().retry() ? absl::StatusCode::kAlreadyExists
                                                           : absl::StatusCode::kFailedPrecondition,
                                 message.refused().reason()));
      case v1::CoordinatorMessage::kConfigure:
        // Ends waits of earlier epochs, so that the main thread gets to the command.
        fence_.EndBefore(
            Epoch{message.configure().epoch()},
            absl::AbortedError(absl::StrCat("epoch ", message.configure().epoch(), " begins")));
        TellEpochEnded();
        return Push(ToCommand(message.configure()));
      case v1::CoordinatorMessage::kLoad:
        return Push(LoadCommand{Epoch{message.load().epoch()}});
      case v1::CoordinatorMessage::kStart:
        return Push(StartCommand{
            Epoch{message.start().epoch()},
            {message.start().num_blocks().begin(), message.start().num_blocks().end()}});
      case v1::CoordinatorMessage::kStep: {
        MutexLock lock(callback_mutex_);
        if (step_frame_) step_frame_(std::move(*message.mutable_step()));
        return;
      }
      case v1::CoordinatorMessage::kRendezvousAnswer:
        return TakeAnswer(*message.mutable_rendezvous_answer());
      case v1::CoordinatorMessage::kAbort:
        fence_.EndThrough(Epoch{message.abort().epoch()},
                          absl::AbortedError(message.abort().reason()));
        return TellEpochEnded();
      case v1::CoordinatorMessage::kPing: {
        v1::WorkerMessage pong;
        pong.mutable_pong()->set_call(message.ping().call());
        return Write(std::move(pong)).IgnoreError();  // a broken stream is reported to OnDone
      }
      case v1::CoordinatorMessage::kShutdown:
        return Stop(message.shutdown().failed()
                        ? absl::UnavailableError(message.shutdown().reason())
                        : absl::OkStatus());
      case v1::CoordinatorMessage::MESSAGE_NOT_SET:
        return Stop(absl::InvalidArgumentError("the coordinator sent an unknown message"));
    }
  }

  void TakeAnswer(v1::RendezvousAnswer& answer) {
    MutexLock lock(mutex_);
    const auto code = static_cast<absl::StatusCode>(answer.code());
    if (code == absl::StatusCode::kOk) {
      answers_.emplace(answer.call(), std::move(*answer.mutable_value()));
    } else {
      answers_.emplace(answer.call(), absl::Status(code, answer.message()));
    }
    changed_.NotifyAll();
  }

  void Push(Command command) {
    if (!commands_.TryPush(std::move(command))) {
      Stop(absl::ResourceExhaustedError("too many commands at once"));
    }
  }

  // The first reason is kept.
  void Stop(const absl::Status& reason) {
    {
      MutexLock lock(mutex_);
      if (!stopped_.has_value()) stopped_ = reason;
    }
    // After stopped_ is set: a thread whose wait this ends then gets StopCommand from NextCommand,
    // not a queued command.
    fence_.EndAll(reason.ok() ? absl::CancelledError("shutdown") : reason);
    commands_.Close();
    TellEpochEnded();
  }

  void TellEpochEnded() {
    {
      MutexLock lock(mutex_);  // not between a waiter's check and its wait
    }
    changed_.NotifyAll();
    MutexLock lock(callback_mutex_);
    if (epoch_ended_) epoch_ended_();
  }

  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::WorkerControl::Stub> stub_;
  grpc::ClientContext context_;
  v1::CoordinatorMessage incoming_;
  BoundedQueue<Command> commands_{kMaxPendingCommands};
  EpochFence fence_;

  Mutex mutex_;
  CondVar changed_;
  std::deque<v1::WorkerMessage> pending_ TANDEM_GUARDED_BY(mutex_);  // front is on the wire
  std::map<uint64_t, absl::StatusOr<std::string>> answers_ TANDEM_GUARDED_BY(mutex_);
  uint64_t last_call_ TANDEM_GUARDED_BY(mutex_) = 0;
  std::optional<absl::Status> stopped_ TANDEM_GUARDED_BY(mutex_);  // why
  bool done_ TANDEM_GUARDED_BY(mutex_) = false;

  Mutex callback_mutex_;
  EpochEnded epoch_ended_ TANDEM_GUARDED_BY(callback_mutex_);
  StepFrame step_frame_ TANDEM_GUARDED_BY(callback_mutex_);
};

// Sets and gets keys of one epoch over the stream.
class StreamRendezvous : public transport::Rendezvous {
 public:
  StreamRendezvous(GrpcControlStream* stream, Epoch epoch) : stream_(stream), epoch_(epoch) {}

  absl::Status Put(const std::string& key, const std::string& value) override {
    v1::WorkerMessage message;
    v1::RendezvousPut& put = *message.mutable_rendezvous_put();
    put.set_epoch(epoch_.value);
    put.set_call(stream_->NextCall());
    put.set_key(key);
    put.set_value(value);
    const uint64_t call = put.call();
    return stream_->Ask(call, epoch_, std::move(message), Deadline::After(kPutTimeout)).status();
  }

  absl::StatusOr<std::string> Get(const std::string& key, Deadline deadline) override {
    v1::WorkerMessage message;
    v1::RendezvousGet& get = *message.mutable_rendezvous_get();
    get.set_epoch(epoch_.value);
    get.set_call(stream_->NextCall());
    get.set_key(key);
    const uint64_t call = get.call();
    absl::StatusOr<std::string> value = stream_->Ask(call, epoch_, std::move(message), deadline);
    if (!value.ok()) return Annotate(value.status(), absl::StrCat("rendezvous key '", key, "'"));
    return value;
  }

 private:
  GrpcControlStream* const stream_;
  const Epoch epoch_;
};

std::unique_ptr<transport::Rendezvous> GrpcControlStream::MakeRendezvous(Epoch epoch) {
  return std::make_unique<StreamRendezvous>(this, epoch);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ControlStream>> ControlStream::Dial(const std::string& address,
                                                                   const Greeting& greeting,
                                                                   Deadline deadline,
                                                                   const TlsFiles& tls) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kControlKeepalive.interval_millis);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kControlKeepalive.answer_millis);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // http_proxy is for other programs: a coordinator is never behind one.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  if (!tls.empty()) arguments.SetSslTargetNameOverride(kCoordinatorName);
  TANDEM_ASSIGN_OR_RETURN(const auto credentials, MakeChannelCredentials(kTlsFlags, tls));
  auto channel = grpc::CreateCustomChannel(address, credentials, arguments);
  while (!WaitConnected(*channel, deadline.OrAfter(kDialReport))) {
    if (deadline.Passed()) {
      return absl::UnavailableError(
          absl::StrCat("no coordinator answers on ", address, ": ", LastError(channel)));
    }
    TANDEM_LOG(kInfo) << "no coordinator answers on " << address << " yet: " << LastError(channel);
  }
  auto stream = std::make_unique<GrpcControlStream>(std::move(channel));
  stream->Open(greeting);
  return stream;
}

}  // namespace tandem::worker
