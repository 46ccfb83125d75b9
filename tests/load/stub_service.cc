#include "tests/load/stub_service.h"

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"

namespace tandem::load {
namespace {

constexpr int kVocabSize = 1000;
constexpr int kBlocks = 100;

grpc::ServerUnaryReactor* Done(grpc::CallbackServerContext* context) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

void AddGauge(const char* name, int64_t value, v1::GetStatsResponse& stats) {
  v1::Metric& metric = *stats.add_metrics();
  metric.set_name(name);
  metric.set_kind(v1::Metric::GAUGE);
  metric.set_value(value);
}

}  // namespace

// One answer; deletes itself when it is over.
class StubService::Answer final : public grpc::ServerWriteReactor<v1::GenerateResponse> {
 public:
  Answer(StubService& service, uint32_t prompt_tokens, uint32_t max_tokens)
      : service_(service), left_(max_tokens) {
    ++service_.running_;
    usage_.set_prompt_tokens(static_cast<int32_t>(prompt_tokens));
    usage_.set_completion_tokens(static_cast<int32_t>(max_tokens));
  }

  void Begin() { WriteLater(); }

  void OnWriteDone(bool ok) override {
    if (!ok) return Finish({grpc::StatusCode::CANCELLED, "the client is gone"});
    if (left_ == 0) return Finish(grpc::Status::OK);
    WriteLater();
  }

  void OnCancel() override {
    MutexLock lock(mutex_);
    cancelled_ = true;
    alarm_.Cancel();
  }

  void OnDone() override {
    --service_.running_;
    delete this;
  }

 private:
  void WriteLater() {
    const Duration interval = service_.behaviour_.token_interval;
    if (interval == Duration::zero()) return Write();  // no alarm, no lock
    MutexLock lock(mutex_);
    const Duration wait = cancelled_ ? Duration::zero() : interval;
    alarm_.Set(std::chrono::system_clock::now() +
                   std::chrono::duration_cast<std::chrono::system_clock::duration>(wait),
               [this](bool) { Write(); });
  }

  void Write() {
    service_.CountMessage();
    message_.Clear();
    for (uint32_t i = 0; i < service_.behaviour_.tokens_per_message && left_ > 0; ++i, --left_) {
      message_.add_token_ids(static_cast<int32_t>(left_ % kVocabSize));
    }
    message_.set_text("x");
    if (left_ == 0) {
      message_.set_finish_reason(v1::FINISH_REASON_LENGTH);
      *message_.mutable_usage() = usage_;
    }
    StartWrite(&message_);
  }

  StubService& service_;
  uint32_t left_;
  v1::Usage usage_;
  v1::GenerateResponse message_;
  Mutex mutex_;
  grpc::Alarm alarm_;  // set and cancelled under mutex_
  bool cancelled_ TANDEM_GUARDED_BY(mutex_) = false;
};

void StubService::CountMessage() {
  const uint64_t count = num_messages_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (count == behaviour_.die_after) behaviour_.die();
}

grpc::ServerWriteReactor<v1::GenerateResponse>* StubService::Generate(
    grpc::CallbackServerContext*, const v1::GenerateRequest* request) {
  if (behaviour_.on_request) behaviour_.on_request(*request);
  const size_t prompt_tokens =
      request->has_text() ? request->text().size() : request->token_ids().ids_size();
  const int32_t max_tokens = std::max(request->sampling().max_tokens(), 1);
  auto* answer =
      new Answer(*this, static_cast<uint32_t>(prompt_tokens), static_cast<uint32_t>(max_tokens));
  const uint64_t number = num_requests_.fetch_add(1) + 1;
  if (behaviour_.refuse_every > 0 && number % behaviour_.refuse_every == 0) {
    answer->Finish({grpc::StatusCode::RESOURCE_EXHAUSTED, "the queue is full"});
  } else {
    answer->Begin();
  }
  return answer;
}

grpc::ServerUnaryReactor* StubService::Tokenize(grpc::CallbackServerContext* context,
                                                const v1::TokenizeRequest* request,
                                                v1::TokenizeResponse* response) {
  for (const char byte : request->text()) response->add_ids(static_cast<unsigned char>(byte));
  return Done(context);
}

grpc::ServerUnaryReactor* StubService::Detokenize(grpc::CallbackServerContext* context,
                                                  const v1::DetokenizeRequest* request,
                                                  v1::DetokenizeResponse* response) {
  for (int i = 0; i < request->ids_size(); ++i) {
    if (request->want_token_bytes()) response->add_token_bytes()->push_back('x');
  }
  return Done(context);
}

grpc::ServerUnaryReactor* StubService::GetModelInfo(grpc::CallbackServerContext* context,
                                                    const v1::GetModelInfoRequest*,
                                                    v1::GetModelInfoResponse* response) {
  response->set_name("stub");
  response->set_vocab_size(kVocabSize);
  response->set_eos_id(0);
  return Done(context);
}

grpc::ServerUnaryReactor* StubService::GetStats(grpc::CallbackServerContext* context,
                                                const v1::GetStatsRequest*,
                                                v1::GetStatsResponse* response) {
  AddGauge("tandem_kv_blocks", kBlocks, *response);
  AddGauge("tandem_kv_blocks_free", kBlocks / 4, *response);
  AddGauge("tandem_num_requests_running", running_, *response);
  AddGauge("tandem_num_requests_waiting", 7, *response);
  return Done(context);
}

absl::StatusOr<std::unique_ptr<StubServer>> StubServer::Start(const std::string& listen,
                                                              StubBehaviour behaviour) {
  std::unique_ptr<StubServer> stub(new StubServer(std::move(behaviour)));
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(listen, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&stub->service_);
  stub->server_ = builder.BuildAndStart();
  if (stub->server_ == nullptr || port == 0) {
    return absl::UnavailableError(absl::StrCat("cannot listen on ", listen));
  }
  stub->address_ = absl::StrCat(listen.substr(0, listen.rfind(':') + 1), port);
  return stub;
}

StubServer::StubServer(StubBehaviour behaviour) : service_(std::move(behaviour)) {}
StubServer::~StubServer() { Shutdown(); }

void StubServer::Shutdown() {
  if (server_ == nullptr) return;
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
  server_ = nullptr;
}

}  // namespace tandem::load
