#include "coordinator/api/grpc/generate_call.h"

#include <grpc/grpc.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "coordinator/api/grpc/refused_call.h"
#include "coordinator/api/grpc/retry_hint.h"
#include "coordinator/api/grpc/turn.h"
#include "coordinator/api/grpc/wire.h"
#include "coordinator/api/request_deadline.h"
#include "coordinator/api/text_stream.h"
#include "coordinator/api/trace_context.h"

namespace tandem::coordinator {
namespace {

// Empty without such an entry.
std::string_view Metadata(const grpc::CallbackServerContext& context, const char* key) {
  const auto found = context.client_metadata().find(key);
  if (found == context.client_metadata().end()) return {};
  return {found->second.data(), found->second.size()};
}

absl::Status ClientIsGone() { return absl::CancelledError("the client is gone"); }

absl::Status TooLate() {
  return absl::DeadlineExceededError(
      "the request's deadline (its call's, or --request-timeout) has passed before it was read");
}

class GenerateCall;
struct Outbox;

// One of the call's continuations: its updates accumulate while messages are being written.
struct Choice : TokenStream {
  Choice(Outbox& of, uint32_t number, TextStream stream)
      : outbox(of), index(number), text(std::move(stream)) {}

  Taken OnUpdate(StreamUpdate update) override {
    const size_t num_tokens = update.tokens.size();
    converted = text.Convert(std::move(update));
    return {.stopped = text.stopped(),
            .num_dropped = static_cast<uint32_t>(num_tokens - converted.tokens.size())};
  }
  void Flush() override;

  Outbox& outbox;
  const uint32_t index;
  TextStream text;       // used by the writer's thread only, as is
  TextUpdate converted;  // what Flush is to add
  // Guarded by the outbox's mutex:
  TextUpdate gathered;
  bool over = false;  // the last update has come
  std::optional<RequestHandle> handle{};
};

// The part of a call that it shares with the engine, which may update a stream whose call has just
// ended.
struct Outbox {
  Outbox(GenerateCall& of, Serving::Parts& parts)
      : engine(parts.engine), tokenizer(parts.model.tokenizer), call(&of) {}

  // Ends what runs, and what is not admitted yet as soon as it is.
  void Abort() {
    {
      MutexLock lock(mutex);
      aborted = true;
    }
    CancelRunning();
  }

  bool WasAborted() {
    MutexLock lock(mutex);
    return aborted;
  }

  // By handle: if a request is over, its id may belong to another one.
  void CancelRunning() {
    std::vector<RequestHandle> running;
    {
      MutexLock lock(mutex);
      for (const Choice& choice : choices) {
        if (choice.handle.has_value() && !choice.over) running.push_back(*choice.handle);
      }
    }
    for (const RequestHandle handle : running) engine.Cancel(handle);
  }

  EngineHandle& engine;
  const std::shared_ptr<const tokenizer::Tokenizer> tokenizer;  // of the choices' texts
  Mutex mutex;
  bool aborted TANDEM_GUARDED_BY(mutex) = false;
  std::deque<Choice> choices TANDEM_GUARDED_BY(mutex);  // their streams keep this alive
  GenerateCall* call TANDEM_GUARDED_BY(mutex);          // null once done
};

class GenerateCall : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  GenerateCall(Serving& serving, Serving::Parts& parts, TokenUsage::Hold turn,
               grpc::CallbackServerContext& context, std::unique_ptr<GenerateForm> form,
               RunningCalls* running)
      : call_(serving.calls),
        turn_(std::move(turn)),
        parts_(parts),
        context_(context),
        deadline_(RequestDeadline(context.deadline(), std::chrono::system_clock::now(),
                                  parts.model.request_timeout, Clock::System().Now())),
        deadline_slack_(GivenUpBefore(deadline_ - Clock::System().Now())),
        trace_id_(TraceId(Metadata(context, kTraceParent))),
        running_(running),
        caller_(running == nullptr ? "" : CallerOf(serving.gate, context)),
        refusals_(serving.refusals),
        outbox_(std::make_shared<Outbox>(*this, parts)),
        form_(std::move(form)) {}

  void Start(CallPlan plan, size_t bytes, ByteBudget::Hold hold) {
    if (running_ != nullptr && !plan.request_id.empty()) {
      MutexLock lock(outbox_->mutex);
      place_ = {*running_, caller_, plan.request_id, [outbox = outbox_] { outbox->Abort(); }};
    }
    // Held by the job, not by the call: once it is admitted, another thread may end the call.
    struct Work {
      CallPlan plan;
      ByteBudget::Hold hold;
    };
    const size_t work_bytes = bytes * plan.num_passes;
    const auto work = std::make_shared<Work>(Work{std::move(plan), std::move(hold)});
    const absl::Status queued = parts_.pool.Run(work_bytes, [this, work, outbox = outbox_] {
      absl::Status admitted = Admit(std::move(work->plan));
      if (!admitted.ok()) return Refuse(admitted, RefusalCounts::kQueueFull);
      if (outbox->WasAborted()) outbox->CancelRunning();
    });
    if (!queued.ok()) Refuse(queued, RefusalCounts::kTokenizerFull);
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
    outbox_->CancelRunning();
  }

  void OnDone() override {
    {
      MutexLock lock(outbox_->mutex);
      outbox_->call = nullptr;
    }
    outbox_->CancelRunning();
    delete this;
  }

  // Sends accumulated updates, unless a write is in progress.
  void Pump() TANDEM_REQUIRES(outbox_->mutex) {
    if (writing_ || finished_ || !admitted_) return;
    if (broken_) return End(ClientIsGone());
    while (messages_.empty()) {
      if (!TakeUpdate()) return;
    }
    message_ = messages_.front();  // shares the bytes
    messages_.pop_front();
    if (messages_.empty() && num_open_ == 0) {
      finished_ = true;
      StartWriteAndFinish(&message_, grpc::WriteOptions(), grpc::Status::OK);
    } else {
      writing_ = true;
      StartWrite(&message_);
    }
  }

  // `bytes` more of updates were accumulated.
  void AddWaiting(size_t bytes) TANDEM_REQUIRES(outbox_->mutex) {
    waiting_bytes_ += bytes;
    Pump();
    DropSlowReader();
  }

 private:
  void Refuse(const absl::Status& status, RefusalCounts::Reason exhausted) {
    refusals_.Add(status.code(), exhausted);
    Finish(Refusal(context_, status));
  }

  // Why a client has gone that did not wait for its request to be read.
  absl::Status GivenUp() const {
    const bool late = Clock::System().Now() >= deadline_ - deadline_slack_;
    return late ? TooLate() : ClientIsGone();
  }

  // Runs on a thread of the pool. A request cancelled while queued or being tokenized is not added
  // to the engine, nor tokenized after its deadline.
  absl::Status Admit(CallPlan plan) {
    {
      MutexLock lock(outbox_->mutex);
      if (cancelled_) return GivenUp();
    }
    if (Clock::System().Now() >= deadline_) return TooLate();
    TANDEM_ASSIGN_OR_RETURN(std::vector<Request> requests, plan.build(parts_.model));
    plan.build = nullptr;  // with the request's texts
    const auto num_choices = static_cast<uint32_t>(requests.size());
    const Request& first = requests.front();
    TANDEM_ASSIGN_OR_RETURN(
        const auto matcher,
        tokenizer::StopMatcher::Create(first.sampling.stop, first.sampling.include_stop));
    MutexLock lock(outbox_->mutex);  // the first update may be here before the handle
    if (cancelled_) return GivenUp();
    id_ = first.id;
    // Not used of an empty prompt: the engine refuses that.
    const TokenId first_token = first.prompt.empty() ? TokenId{} : first.prompt.front();
    for (uint32_t index = 0; index < num_choices; ++index) {
      Request& request = requests[index];
      request.deadline = deadline_;
      request.deadline_slack = deadline_slack_;
      request.trace_id = trace_id_;
      Choice& choice = outbox_->choices.emplace_back(
          *outbox_, index,
          TextStream(*outbox_->tokenizer, matcher, request.sampling, plan.skip_special_tokens));
      request.stream = {outbox_, &choice};
    }
    TANDEM_ASSIGN_OR_RETURN(const std::vector<RequestHandle> handles,
                            outbox_->engine.AddAll(std::move(requests)));
    for (uint32_t index = 0; index < num_choices; ++index) {
      outbox_->choices[index].handle = handles[index];
    }
    form_->Begin(first_token);
    num_open_ = num_choices;
    admitted_ = true;
    Pump();
    return absl::OkStatus();
  }

  // Adds the messages of the next update, the continuations taking turns. False if there is none,
  // or if it has ended the call.
  bool TakeUpdate() TANDEM_REQUIRES(outbox_->mutex) {
    const size_t num_choices = outbox_->choices.size();
    absl::Status failure;
    for (size_t tried = 0; tried < num_choices; ++tried) {
      Choice& choice = outbox_->choices[next_choice_++ % num_choices];
      std::optional<TextUpdate> update = choice.gathered.Take();
      if (!update.has_value()) continue;
      if (!update->status.ok()) {
        failure = update->status;
        FailAll(failure);
        continue;
      }
      waiting_bytes_ -= update->GeneratedBytes();
      if (update->last()) TakeEnd(*update);
      form_->AppendMessages(id_, choice.index, *std::move(update), messages_);
      return true;
    }
    if (!failure.ok()) End(failure);
    return false;
  }

  // One has failed: what others have by now still goes out, and nothing more.
  void FailAll(const absl::Status& failure) TANDEM_REQUIRES(outbox_->mutex) {
    for (Choice& choice : outbox_->choices) {
      if (!choice.gathered.last()) choice.gathered.status = failure;
    }
  }

  void TakeEnd(const TextUpdate& update) TANDEM_REQUIRES(outbox_->mutex) {
    --num_open_;
    TANDEM_LOG_REQUEST(kDebug, LogName()) << update.usage.prompt_tokens << " prompt tokens, "
                                          << update.usage.completion_tokens << " generated";
  }

  // Ends the call if too much waits behind a message that its client has not read yet. The engine
  // learns of it by OnCancel.
  void DropSlowReader() TANDEM_REQUIRES(outbox_->mutex) {
    const size_t most = parts_.model.max_stream_bytes;
    if (!writing_ || dropped_ || waiting_bytes_ <= most) return;
    dropped_ = true;
    const std::string reason =
        absl::StrCat("the client does not read: ", waiting_bytes_, " bytes wait, at most ", most,
                     " (--max-stream-buffer)");
    TANDEM_LOG_REQUEST(kWarning, LogName()) << reason;
    // Unlike Finish it does not wait for the message in flight.
    grpc_call_cancel_with_status(context_.c_call(), GRPC_STATUS_RESOURCE_EXHAUSTED, reason.c_str(),
                                 nullptr);
  }

  LogRequest LogName() const TANDEM_REQUIRES(outbox_->mutex) {
    return {.id = id_, .trace_id = trace_id_};
  }

  void End(const absl::Status& status) TANDEM_REQUIRES(outbox_->mutex) {
    finished_ = true;
    TANDEM_LOG_REQUEST(kInfo, LogName()) << status.message();
    Finish(ToGrpc(status));
  }

  const OpenCalls::Call call_;
  const TokenUsage::Hold turn_;
  Serving::Parts& parts_;
  grpc::CallbackServerContext& context_;  // valid until OnDone
  const TimePoint deadline_;
  const Duration deadline_slack_;  // Request::deadline_slack
  const std::string trace_id_;     // for the log
  RunningCalls* const running_;
  const std::string caller_;  // whose the call is, for `running_`
  RefusalCounts& refusals_;
  const std::shared_ptr<Outbox> outbox_;
  const std::unique_ptr<GenerateForm>
      form_;  // used by one thread at a time: with the outbox's mutex
  std::string id_ TANDEM_GUARDED_BY(outbox_->mutex);
  RunningCalls::Place place_ TANDEM_GUARDED_BY(outbox_->mutex);
  bool admitted_ TANDEM_GUARDED_BY(outbox_->mutex) = false;
  uint32_t num_open_ TANDEM_GUARDED_BY(outbox_->mutex) = 0;  // choices whose end was not taken
  size_t next_choice_ TANDEM_GUARDED_BY(outbox_->mutex) = 0;
  size_t waiting_bytes_ TANDEM_GUARDED_BY(outbox_->mutex) = 0;  // of updates not taken
  bool cancelled_ TANDEM_GUARDED_BY(outbox_->mutex) = false;
  bool writing_ TANDEM_GUARDED_BY(outbox_->mutex) = false;
  bool broken_ TANDEM_GUARDED_BY(outbox_->mutex) = false;
  bool finished_ TANDEM_GUARDED_BY(outbox_->mutex) = false;
  bool dropped_ TANDEM_GUARDED_BY(outbox_->mutex) = false;
  std::deque<grpc::ByteBuffer> messages_ TANDEM_GUARDED_BY(outbox_->mutex);  // to be written
  grpc::ByteBuffer message_ TANDEM_GUARDED_BY(outbox_->mutex);               // being written
};

// The call's outbox is this one, which the analysis can't tell.
void Choice::Flush() TANDEM_NO_THREAD_SAFETY_ANALYSIS {
  MutexLock lock(outbox.mutex);
  over |= converted.last();
  const size_t bytes = gathered.last() ? 0 : converted.GeneratedBytes();
  gathered.Append(std::exchange(converted, TextUpdate{}));
  if (outbox.call != nullptr) outbox.call->AddWaiting(bytes);
}

}  // namespace

grpc::ServerWriteReactor<grpc::ByteBuffer>* StartGenerateCall(Serving& serving,
                                                              grpc::CallbackServerContext& context,
                                                              const grpc::ByteBuffer& request,
                                                              std::unique_ptr<GenerateForm> form,
                                                              RunningCalls* running) {
  absl::StatusOr<Serving::Parts*> parts = serving.Get();
  const auto refuse = [&](const grpc::Status& status, RefusalCounts::Reason exhausted) {
    serving.refusals.Add(static_cast<absl::StatusCode>(status.error_code()), exhausted);
    return new RefusedStream(status);
  };
  if (!parts.ok()) return refuse(Refusal(context, parts.status()), RefusalCounts::kUnavailable);
  absl::StatusOr<ByteBudget::Hold> hold = serving.budget.Take(request.Length());
  if (!hold.ok()) return refuse(Refusal(context, hold.status()), RefusalCounts::kTokenizerFull);
  absl::StatusOr<CallPlan> plan = form->Parse(request);
  if (!plan.ok()) return refuse(ToGrpc(plan.status()), RefusalCounts::kInvalid);
  TokenUsage::Hold turn;
  const auto count = static_cast<uint32_t>(std::clamp(plan->num_requests, 1, kMaxChoices));
  const grpc::Status taken = TakeTurn(serving.gate, context, turn, count);
  if (!taken.ok()) return refuse(taken, RefusalCounts::kRateLimit);
  // Deletes itself in OnDone.
  auto* call =
      new GenerateCall(serving, **parts, std::move(turn), context, std::move(form), running);
  call->Start(*std::move(plan), request.Length(), *std::move(hold));
  return call;
}

}  // namespace tandem::coordinator
