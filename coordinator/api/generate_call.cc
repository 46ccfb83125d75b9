#include "coordinator/api/generate_call.h"

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "coordinator/api/request_builder.h"
#include "coordinator/api/text_stream.h"

namespace tandem::coordinator {
namespace {

v1::FinishReason ToProto(FinishReason reason) {
  switch (reason) {
    case FinishReason::kNone:
      return v1::FINISH_REASON_UNSPECIFIED;
    case FinishReason::kStop:
      return v1::FINISH_REASON_STOP;
    case FinishReason::kLength:
      return v1::FINISH_REASON_LENGTH;
    case FinishReason::kCancelled:
      return v1::FINISH_REASON_CANCELLED;
  }
  return v1::FINISH_REASON_UNSPECIFIED;
}

void FillLogprobs(const std::vector<TokenLogprobs>& from,
                  google::protobuf::RepeatedPtrField<v1::TokenLogprobs>& out) {
  for (const TokenLogprobs& one : from) {
    v1::TokenLogprobs& proto = *out.Add();
    proto.set_token_id(one.token.token);
    proto.set_logprob(one.token.logprob);
    proto.set_rank(static_cast<int32_t>(one.token.rank));
    for (const step::TokenLogprob& top : one.top) {
      v1::TopLogprob& top_proto = *proto.add_top();
      top_proto.set_token_id(top.token);
      top_proto.set_logprob(top.logprob);
      top_proto.set_rank(static_cast<int32_t>(top.rank));
    }
  }
}

class GenerateCall : public grpc::ServerWriteReactor<v1::GenerateResponse> {
 public:
  explicit GenerateCall(EngineHandle& engine) : engine_(engine), link_(std::make_shared<Link>()) {
    link_->call = this;
  }

  void Start(const v1::GenerateRequest& proto, const ServingModel& model) {
    absl::Status admitted = Admit(proto, model);
    if (!admitted.ok()) Finish(ToGrpc(admitted));
  }

  void OnWriteDone(bool ok) override {
    std::lock_guard lock(link_->mutex);
    writing_ = false;
    if (!ok) broken_ = true;  // the client is gone; OnCancel follows or came
    Pump();
  }

  void OnCancel() override { CancelIfRunning(); }

  void OnDone() override {
    {
      std::lock_guard lock(link_->mutex);
      link_->call = nullptr;
    }
    CancelIfRunning();
    delete this;
  }

 private:
  // Outlives the call: the engine may wake a stream whose call has just ended.
  struct Link {
    std::mutex mutex;
    GenerateCall* call = nullptr;  // guarded by mutex; null once done
  };

  absl::Status Admit(const v1::GenerateRequest& proto, const ServingModel& model) {
    TANDEM_ASSIGN_OR_RETURN(Request request, BuildRequest(proto, model));
    TANDEM_ASSIGN_OR_RETURN(auto stream, TextStream::Create(*model.tokenizer, request.sampling));
    stream->OnReady([link = link_] {
      std::lock_guard lock(link->mutex);
      if (link->call != nullptr) link->call->Pump();
    });
    request.stream = stream;
    std::lock_guard lock(link_->mutex);  // the engine may be quicker than we are
    id_ = request.id;
    stream_ = std::move(stream);
    TANDEM_ASSIGN_OR_RETURN(handle_, engine_.Add(std::move(request)));
    return absl::OkStatus();
  }

  // Sends what has gathered, unless a write is under way. Link's mutex held.
  void Pump() {
    if (writing_ || finished_ || stream_ == nullptr || !handle_.has_value()) return;
    std::optional<TextDelta> delta = stream_->Take();
    if (!delta.has_value() && !broken_) return;
    if (broken_ || !delta->status.ok()) {
      finished_ = true;
      Finish(ToGrpc(broken_ ? absl::CancelledError("the client is gone") : delta->status));
      return;
    }
    FillResponse(*delta);
    if (delta->last()) {
      finished_ = true;
      StartWriteAndFinish(&response_, grpc::WriteOptions(), grpc::Status::OK);
    } else {
      writing_ = true;
      StartWrite(&response_);
    }
  }

  void FillResponse(const TextDelta& delta) {
    response_.Clear();
    response_.set_request_id(id_);
    response_.set_text(delta.text);
    response_.mutable_token_ids()->Add(delta.token_ids.begin(), delta.token_ids.end());
    FillLogprobs(delta.logprobs, *response_.mutable_logprobs());
    FillLogprobs(delta.prompt_logprobs, *response_.mutable_prompt_logprobs());
    if (!delta.last()) return;
    response_.set_finish_reason(ToProto(delta.reason));
    v1::Usage& usage = *response_.mutable_usage();
    usage.set_prompt_tokens(static_cast<int32_t>(delta.usage.prompt_tokens));
    usage.set_completion_tokens(static_cast<int32_t>(delta.usage.completion_tokens));
    usage.set_cached_tokens(static_cast<int32_t>(delta.usage.cached_tokens));
  }

  // By handle: should the request be over by now, its id may be somebody else's.
  void CancelIfRunning() {
    std::optional<RequestHandle> running;
    {
      std::lock_guard lock(link_->mutex);
      if (stream_ != nullptr && !stream_->ended()) running = handle_;
    }
    if (running.has_value()) engine_.Cancel(*running);
  }

  EngineHandle& engine_;
  const std::shared_ptr<Link> link_;
  // Guarded by the link's mutex:
  std::string id_;
  std::shared_ptr<TextStream> stream_;
  std::optional<RequestHandle> handle_;  // once admitted
  bool writing_ = false;
  bool broken_ = false;
  bool finished_ = false;
  v1::GenerateResponse response_;
};

}  // namespace

grpc::Status ToGrpc(const absl::Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()), std::string(status.message())};
}

grpc::ServerWriteReactor<v1::GenerateResponse>* StartGenerateCall(
    const v1::GenerateRequest& request, const ServingModel& model, EngineHandle& engine) {
  auto* call = new GenerateCall(engine);  // deletes itself in OnDone
  call->Start(request, model);
  return call;
}

}  // namespace tandem::coordinator
