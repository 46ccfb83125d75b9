#include "tests/load/tandem_backend.h"

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "client/channel.h"
#include "common/base/status.h"

namespace tandem::load {
namespace {

constexpr Duration kTokenizeTimeout = std::chrono::seconds(30);

void SetDeadline(Deadline deadline, grpc::ClientContext& context) {
  context.set_deadline(client::DeadlineAfter(deadline.Left()));
}

v1::GenerateRequest ToProto(const LoadRequest& request, const RequestSettings& settings) {
  v1::GenerateRequest proto;
  if (request.token_ids.empty()) {
    proto.set_text(request.text);
  } else {
    proto.mutable_token_ids()->mutable_ids()->Add(request.token_ids.begin(),
                                                  request.token_ids.end());
  }
  v1::SamplingParams& sampling = *proto.mutable_sampling();
  sampling.set_max_tokens(static_cast<int32_t>(request.output_tokens));
  if (settings.ignore_eos) sampling.set_ignore_eos(true);
  if (settings.temperature.has_value()) sampling.set_temperature(*settings.temperature);
  proto.set_adapter(settings.adapter);
  if (settings.priority.has_value()) proto.set_priority(*settings.priority);
  return proto;
}

}  // namespace

// One request; deletes itself when it is over.
class TandemBackend::Call final : public grpc::ClientReadReactor<v1::GenerateResponse> {
 public:
  Call(TandemBackend& backend, const LoadRequest& request, AnswerListener& listener)
      : backend_(backend),
        listener_(listener),
        request_(ToProto(request, backend.settings_)),
        context_(std::make_shared<grpc::ClientContext>()) {
    context_->set_deadline(client::DeadlineAfter(backend.settings_.timeout));
  }

  void Start() {
    {
      MutexLock lock(backend_.mutex_);
      backend_.in_flight_.emplace(this, context_);
    }
    backend_.stub_->async()->Generate(context_.get(), &request_, this);
    StartRead(&response_);
    StartCall();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;  // OnDone has the reason
    finished_ |= response_.finish_reason() != v1::FINISH_REASON_UNSPECIFIED;
    if (response_.has_usage()) {
      usage_.prompt_tokens = static_cast<uint32_t>(response_.usage().prompt_tokens());
      usage_.completion_tokens = static_cast<uint32_t>(response_.usage().completion_tokens());
    }
    const auto num_tokens = static_cast<uint32_t>(response_.token_ids_size());
    switch (num_tokens == 0 ? Next::kRead : listener_.OnTokens(num_tokens)) {
      case Next::kReadLater:
        // The hold keeps the call, whose end may come during the delay.
        AddHold();
        alarm_.Set(client::DeadlineAfter(backend_.settings_.slow_read_delay), [this](bool) {
          StartRead(&response_);
          RemoveHold();
        });
        return;
      case Next::kCancel:
        context_->TryCancel();
        [[fallthrough]];
      case Next::kRead:
        StartRead(&response_);
    }
  }

  void OnDone(const grpc::Status& grpc_status) override {
    absl::Status status = client::FromGrpc(grpc_status, backend_.server_);
    if (status.ok() && !finished_) {
      status = absl::InternalError("the server ended the stream without a finish reason");
    }
    {
      MutexLock lock(backend_.mutex_);
      backend_.in_flight_.erase(this);
    }
    AnswerListener& listener = listener_;
    const ServerUsage usage = usage_;
    delete this;  // the backend may be destroyed as soon as the listener is notified
    listener.OnEnd(status, usage);
  }

 private:
  TandemBackend& backend_;
  AnswerListener& listener_;
  const v1::GenerateRequest request_;
  const std::shared_ptr<grpc::ClientContext> context_;
  v1::GenerateResponse response_;
  grpc::Alarm alarm_;
  ServerUsage usage_;
  bool finished_ = false;
};

absl::StatusOr<std::unique_ptr<Backend>> TandemBackend::Connect(
    const client::Connection& connection, const RequestSettings& settings) {
  TANDEM_RETURN_IF_ERROR(client::Validate(connection));
  TANDEM_ASSIGN_OR_RETURN(auto channel, client::MakeChannel(connection));
  return std::unique_ptr<Backend>(
      new TandemBackend(std::move(channel), connection.server, settings));
}

TandemBackend::TandemBackend(std::shared_ptr<grpc::Channel> channel, std::string server,
                             const RequestSettings& settings)
    : server_(std::move(server)), settings_(settings), stub_(v1::Generation::NewStub(channel)) {}

absl::StatusOr<ModelFacts> TandemBackend::Model(Deadline deadline) {
  grpc::ClientContext context;
  SetDeadline(deadline, context);
  v1::GetModelInfoResponse info;
  TANDEM_RETURN_IF_ERROR(
      client::FromGrpc(stub_->GetModelInfo(&context, v1::GetModelInfoRequest(), &info), server_));
  if (info.vocab_size() < 1) {
    return absl::InternalError("the server names no size of the vocabulary");
  }
  ModelFacts facts{
      .name = info.name(),
      .vocab_size = static_cast<uint32_t>(info.vocab_size()),
      .special_ids = {info.end_of_generation_ids().begin(), info.end_of_generation_ids().end()}};
  if (info.has_bos_id()) facts.special_ids.push_back(info.bos_id());
  if (info.has_eos_id()) facts.special_ids.push_back(info.eos_id());
  return facts;
}

absl::StatusOr<uint32_t> TandemBackend::CountTokens(const std::string& text) {
  grpc::ClientContext context;
  SetDeadline(Deadline::After(kTokenizeTimeout), context);
  v1::TokenizeRequest request;
  request.set_text(text);
  v1::TokenizeResponse response;
  TANDEM_RETURN_IF_ERROR(client::FromGrpc(stub_->Tokenize(&context, request, &response), server_));
  return static_cast<uint32_t>(response.ids_size());
}

absl::StatusOr<StatsPoint> TandemBackend::Stats(Deadline deadline) {
  grpc::ClientContext context;
  SetDeadline(deadline, context);
  v1::GetStatsResponse stats;
  TANDEM_RETURN_IF_ERROR(
      client::FromGrpc(stub_->GetStats(&context, v1::GetStatsRequest(), &stats), server_));
  StatsPoint point;
  int64_t blocks = 0;
  int64_t free_blocks = 0;
  for (const v1::Metric& metric : stats.metrics()) {
    if (metric.name() == "tandem_num_requests_waiting") point.waiting = metric.value();
    if (metric.name() == "tandem_num_requests_running") point.running = metric.value();
    if (metric.name() == "tandem_kv_blocks") blocks = metric.value();
    if (metric.name() == "tandem_kv_blocks_free") free_blocks = metric.value();
  }
  if (blocks > 0) {
    point.kv_used = static_cast<double>(blocks - free_blocks) / static_cast<double>(blocks);
  }
  return point;
}

void TandemBackend::Start(const LoadRequest& request, AnswerListener& listener) {
  (new Call(*this, request, listener))->Start();
}

void TandemBackend::CancelAll() {
  // Outside the lock, which OnDone takes, possibly on this thread.
  std::vector<std::shared_ptr<grpc::ClientContext>> contexts;
  {
    MutexLock lock(mutex_);
    for (const auto& [call, context] : in_flight_) contexts.push_back(context);
  }
  for (const auto& context : contexts) context->TryCancel();
}

}  // namespace tandem::load
