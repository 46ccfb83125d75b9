#include "coordinator/api/grpc/generate_call.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "coordinator/api/grpc/params_from_proto.h"
#include "coordinator/api/grpc/wire.h"
#include "coordinator/api/request_builder.h"
#include "coordinator/api/text_stream.h"
#include "coordinator/api/text_update.h"
#include "proto/tandem/v1/generation.pb.h"

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

void FillMatchedStop(const TextUpdate::Matched& matched, v1::GenerateResponse& out) {
  if (const auto* text = std::get_if<std::string>(&matched)) out.set_matched_stop_string(*text);
  if (const auto* id = std::get_if<TokenId>(&matched)) out.set_matched_stop_token_id(*id);
}

absl::Status ClientIsGone() { return absl::CancelledError("the client is gone"); }

// The call's reactor, and the part shared with the engine, which outlives the call: the engine may
// update a stream whose call has just ended.
class GenerateCall : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  GenerateCall(OpenCalls& calls, EngineHandle& engine)
      : call_(calls), engine_(engine), outbox_(std::make_shared<Outbox>(*this)) {}

  void Start(const grpc::ByteBuffer& request, ByteBudget::Hold hold, const ServingModel& model,
             TokenizerPool& pool) {
    auto proto = std::make_shared<v1::GenerateRequest>();
    if (absl::Status parsed = Parse(request, *proto); !parsed.ok()) return Finish(ToGrpc(parsed));
    // Held by the job, not by the call: once it is admitted, another thread may end the call.
    const auto held = std::make_shared<ByteBudget::Hold>(std::move(hold));
    const absl::Status queued = pool.Run(request.Length(), [this, proto, held, &model] {
      absl::Status admitted = Admit(*proto, model);
      if (!admitted.ok()) Finish(ToGrpc(admitted));
    });
    if (!queued.ok()) Finish(ToGrpc(queued));
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(outbox_->mutex);
    writing_ = false;
    if (!ok) broken_ = true;  // the client is gone; OnCancel follows or has been called
    Pump();
  }

  void OnCancel() override {
    {
      MutexLock lock(outbox_->mutex);
      cancelled_ = true;
    }
    CancelIfRunning();
  }

  void OnDone() override {
    {
      MutexLock lock(outbox_->mutex);
      outbox_->call = nullptr;
    }
    CancelIfRunning();
    delete this;
  }

 private:
  // Updates accumulated while a message is being written.
  struct Outbox : TokenStream {
    explicit Outbox(GenerateCall& of) : call(&of) {}

    bool OnUpdate(StreamUpdate update) override {
      converted = text->Convert(std::move(update));
      return !text->ended();
    }
    // The call's outbox is this one, which the analysis can't tell.
    void Flush() override TANDEM_NO_THREAD_SAFETY_ANALYSIS {
      MutexLock lock(mutex);
      over |= converted.last();
      gathered.Append(std::exchange(converted, TextUpdate{}));
      if (call != nullptr) call->Pump();
    }

    std::shared_ptr<const tokenizer::Tokenizer> tokenizer;  // of `text`, for the stream's lifetime
    std::optional<TextStream> text;  // set before Add; then used by the writer only
    TextUpdate converted;            // used by the writer's thread only
    Mutex mutex;
    TextUpdate gathered TANDEM_GUARDED_BY(mutex);
    bool over TANDEM_GUARDED_BY(mutex) = false;   // the last update has come
    GenerateCall* call TANDEM_GUARDED_BY(mutex);  // null once done
  };

  // Runs on a thread of the pool. A request cancelled while queued or being tokenized is not added
  // to the engine.
  absl::Status Admit(const v1::GenerateRequest& proto, const ServingModel& model) {
    {
      MutexLock lock(outbox_->mutex);
      if (cancelled_) return ClientIsGone();
    }
    TANDEM_ASSIGN_OR_RETURN(Request request, BuildRequest(ParamsFromProto(proto), model));
    outbox_->tokenizer = model.tokenizer;
    const bool skip_special = !proto.has_skip_special_tokens() || proto.skip_special_tokens();
    TANDEM_ASSIGN_OR_RETURN(outbox_->text,
                            TextStream::Create(*model.tokenizer, request.sampling, skip_special));
    request.stream = outbox_;
    MutexLock lock(outbox_->mutex);  // the first update may be here before the handle
    if (cancelled_) return ClientIsGone();
    id_ = request.id;
    TANDEM_ASSIGN_OR_RETURN(handle_, engine_.Add(std::move(request)));
    return absl::OkStatus();
  }

  // Sends the accumulated updates, unless a write is in progress.
  void Pump() TANDEM_REQUIRES(outbox_->mutex) {
    if (writing_ || finished_ || !handle_.has_value()) return;
    std::optional<TextUpdate> update = outbox_->gathered.Take();
    if (!update.has_value() && !broken_) return;
    if (broken_ || !update->status.ok()) {
      finished_ = true;
      const absl::Status status = broken_ ? ClientIsGone() : update->status;
      TANDEM_LOG(kInfo) << "request \"" << id_ << "\": " << status.message();
      Finish(ToGrpc(status));
      return;
    }
    message_ = Serialize(Response(*update));
    if (update->last()) {
      finished_ = true;
      TANDEM_LOG(kDebug) << "request \"" << id_ << "\": " << update->usage.prompt_tokens
                         << " prompt tokens, " << update->usage.completion_tokens << " generated, "
                         << v1::FinishReason_Name(ToProto(update->reason));
      StartWriteAndFinish(&message_, grpc::WriteOptions(), grpc::Status::OK);
    } else {
      writing_ = true;
      StartWrite(&message_);
    }
  }

  v1::GenerateResponse Response(const TextUpdate& update) const TANDEM_REQUIRES(outbox_->mutex) {
    v1::GenerateResponse response;
    response.set_request_id(id_);
    response.set_text(update.text);
    response.mutable_token_ids()->Add(update.tokens.begin(), update.tokens.end());
    FillLogprobs(update.logprobs, *response.mutable_logprobs());
    FillLogprobs(update.prompt_logprobs, *response.mutable_prompt_logprobs());
    if (!update.last()) return response;
    response.set_finish_reason(ToProto(update.reason));
    FillMatchedStop(update.matched_stop, response);
    v1::Usage& usage = *response.mutable_usage();
    usage.set_prompt_tokens(static_cast<int32_t>(update.usage.prompt_tokens));
    usage.set_completion_tokens(static_cast<int32_t>(update.usage.completion_tokens));
    usage.set_cached_tokens(static_cast<int32_t>(update.usage.cached_tokens));
    return response;
  }

  // By handle: if the request is over, its id may belong to another request.
  void CancelIfRunning() {
    std::optional<RequestHandle> running;
    {
      MutexLock lock(outbox_->mutex);
      if (!outbox_->over) running = handle_;
    }
    if (running.has_value()) engine_.Cancel(*running);
  }

  const OpenCalls::Call call_;
  EngineHandle& engine_;
  const std::shared_ptr<Outbox> outbox_;
  std::string id_ TANDEM_GUARDED_BY(outbox_->mutex);
  std::optional<RequestHandle> handle_ TANDEM_GUARDED_BY(outbox_->mutex);  // once admitted
  bool cancelled_ TANDEM_GUARDED_BY(outbox_->mutex) = false;
  bool writing_ TANDEM_GUARDED_BY(outbox_->mutex) = false;
  bool broken_ TANDEM_GUARDED_BY(outbox_->mutex) = false;
  bool finished_ TANDEM_GUARDED_BY(outbox_->mutex) = false;
  grpc::ByteBuffer message_ TANDEM_GUARDED_BY(outbox_->mutex);
};

}  // namespace

grpc::ServerWriteReactor<grpc::ByteBuffer>* StartGenerateCall(
    OpenCalls& calls, const grpc::ByteBuffer& request, ByteBudget::Hold hold,
    const ServingModel& model, TokenizerPool& pool, EngineHandle& engine) {
  auto* call = new GenerateCall(calls, engine);  // deletes itself in OnDone
  call->Start(request, std::move(hold), model, pool);
  return call;
}

}  // namespace tandem::coordinator
