#include "coordinator/api/grpc/unary_call.h"

#include <atomic>
#include <utility>

#include "coordinator/api/grpc/refused_call.h"
#include "coordinator/api/grpc/retry_hint.h"
#include "coordinator/api/grpc/turn.h"
#include "coordinator/api/grpc/wire.h"

namespace tandem::coordinator {
namespace {

// A call over a text, which may be long: its bytes are taken until the answer is sent.
class TextCall : public grpc::ServerUnaryReactor {
 public:
  TextCall(OpenCalls& calls, ByteBudget::Hold hold, TokenUsage::Hold turn)
      : call_(calls), hold_(std::move(hold)), turn_(std::move(turn)) {}

  void OnCancel() override { gone_.store(true, std::memory_order_relaxed); }
  bool gone() const { return gone_.load(std::memory_order_relaxed); }
  void OnDone() override { delete this; }

 private:
  const OpenCalls::Call call_;
  const ByteBudget::Hold hold_;
  const TokenUsage::Hold turn_;
  std::atomic<bool> gone_{false};
};

}  // namespace

grpc::ServerUnaryReactor* Answer(const Serving& serving, grpc::CallbackServerContext* context,
                                 const grpc::ByteBuffer& request, grpc::ByteBuffer* response,
                                 const AnswerFn& answer) {
  absl::StatusOr<Serving::Parts*> parts = serving.Get();
  if (!parts.ok()) return FinishAtOnce(context, Refusal(*context, parts.status()));
  absl::StatusOr<grpc::ByteBuffer> answered = answer(**parts, request);
  if (answered.ok()) *response = *answered;
  return FinishAtOnce(context, ToGrpc(answered.status()));
}

grpc::ServerUnaryReactor* AnswerFromPool(Serving& serving, grpc::CallbackServerContext* context,
                                         const grpc::ByteBuffer& request,
                                         grpc::ByteBuffer* response, AnswerFn answer) {
  absl::StatusOr<Serving::Parts*> parts = serving.Get();
  const auto refuse = [&](const grpc::Status& status, RefusalCounts::Reason exhausted) {
    serving.refusals.Add(static_cast<absl::StatusCode>(status.error_code()), exhausted);
    return FinishAtOnce(context, status);
  };
  if (!parts.ok()) return refuse(Refusal(*context, parts.status()), RefusalCounts::kUnavailable);
  TokenUsage::Hold turn;
  const grpc::Status taken = TakeTurn(serving.gate, *context, turn);
  if (!taken.ok()) return refuse(taken, RefusalCounts::kRateLimit);
  absl::StatusOr<ByteBudget::Hold> hold = serving.budget.Take(request.Length());
  if (!hold.ok()) return refuse(Refusal(*context, hold.status()), RefusalCounts::kTokenizerFull);
  auto* call = new TextCall(serving.calls, *std::move(hold), std::move(turn));
  Serving::Parts& ready = **parts;
  // `request` and `response` are valid until Finish.
  const absl::Status queued = ready.pool.Run(
      request.Length(),
      [=, &request, &ready, &refusals = serving.refusals, answer = std::move(answer)] {
        if (call->gone()) return call->Finish(ToGrpc(absl::CancelledError("the client is gone")));
        absl::StatusOr<grpc::ByteBuffer> answered = answer(ready, request);
        if (answered.ok()) *response = *answered;
        refusals.Add(answered.status().code(), RefusalCounts::kInvalid);
        call->Finish(ToGrpc(answered.status()));
      });
  if (!queued.ok()) {
    serving.refusals.Add(queued.code(), RefusalCounts::kTokenizerFull);
    call->Finish(Refusal(*context, queued));
  }
  return call;
}

}  // namespace tandem::coordinator
