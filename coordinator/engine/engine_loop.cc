#include "coordinator/engine/engine_loop.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/log.h"

namespace tandem::coordinator {
namespace {

// How long an idle engine sleeps before it checks the health of its workers.
constexpr auto kIdleWait = std::chrono::milliseconds(100);
// How often an idle engine checks the accounting of every block, and the largest number of blocks
// for which it does: a request that arrives meanwhile waits.
constexpr auto kIntegrityInterval = std::chrono::minutes(1);
constexpr int64_t kMostCheckedBlocks = 1 << 18;

// Beyond a step's own timeout: for a verdict on the workers, for killing those that are stuck, and
// between two looks at the inbox while they are replaced.
constexpr auto kLifeMargin = std::chrono::seconds(30);

constexpr char kStoppingMessage[] = "the server is shutting down";

// Of each prompt the tokens after what it shares with the one before: the others may find that in
// the prefix cache. Not what is scored or pooled, which each computes.
std::vector<uint64_t> UnsharedTokens(const std::vector<Request>& requests) {
  std::vector<uint64_t> unshared;
  const std::vector<TokenId>* last = nullptr;
  for (const Request& request : requests) {
    const auto begin = request.prompt.begin();
    const auto shared_end =
        last == nullptr
            ? begin
            : std::mismatch(begin, request.prompt.end(), last->begin(), last->end()).first;
    const bool pools_all = request.pooling.has_value() && *request.pooling != Pooling::kLast;
    const auto computed = pools_all ? request.prompt.size() : request.targets.size();
    unshared.push_back(std::max<uint64_t>(request.prompt.end() - shared_end, computed));
    last = &request.prompt;
  }
  return unshared;
}

}  // namespace

// Of each request in flight the inbox holds at most two events, and one of each that its stream has
// stopped since the last step: no more than there were in flight then. And one of no request.
EngineLoop::EngineLoop(std::unique_ptr<EngineCore> core, LostFn on_lost, RecoverFn recover,
                       size_t num_writers, const Clock& clock)
    : core_(std::move(core)),
      on_lost_(std::move(on_lost)),
      recover_(std::move(recover)),
      clock_(clock),
      check_(core_->config()),
      inbox_(3 * capacity() + 1),
      stats_(core_->Stats()),
      due_(clock.Now() + core_->config().step_timeout + kLifeMargin),
      writers_(num_writers,
               [this](RequestHandle handle, bool stopped) { Release(handle, stopped); }) {
  core_->set_deliver([this](std::vector<Delivery> deliveries) {
    PublishStats();  // before any stream ends
    LeaveQueue(deliveries);
    writers_.Deliver(std::move(deliveries));
  });
  if (num_writers > 0) thread_ = std::thread([this] { Run(); });
}

EngineLoop::~EngineLoop() { Shutdown(); }

size_t EngineLoop::capacity() const {
  const EngineConfig& config = core_->config();
  return size_t{config.scheduler.max_num_seqs} + config.max_queued_requests;
}

absl::StatusOr<std::vector<RequestHandle>> EngineLoop::AddAll(std::vector<Request> requests) {
  for (const Request& request : requests) {
    if (absl::Status status = check_.Check(request); !status.ok()) return status;
  }
  const std::vector<uint64_t> prompt_tokens = UnsharedTokens(requests);
  MutexLock lock(mutex_);
  if (absl::Status status = Refusal(); !status.ok()) return status;
  for (const Request& request : requests) {
    if (!ids_in_flight_.contains(request.id)) continue;
    return absl::AlreadyExistsError(
        absl::StrCat("request id \"", request.id, "\" is already in flight"));
  }
  const uint64_t all_tokens =
      std::accumulate(prompt_tokens.begin(), prompt_tokens.end(), uint64_t{0});
  if (absl::Status status = CheckRoom(requests.size(), all_tokens); !status.ok()) return status;
  std::vector<RequestHandle> handles;
  for (Request& request : requests) {
    const uint64_t queued = prompt_tokens[handles.size()];
    const RequestHandle handle = handles.emplace_back(++last_handle_);
    in_flight_[handle] = {.id = request.id, .queued_tokens = queued};
    queued_tokens_ += queued;
    ids_in_flight_.insert(request.id);
    Push(handle, std::move(request));
  }
  return handles;
}

absl::Status EngineLoop::CheckRoom(size_t num_requests, uint64_t prompt_tokens) const {
  const EngineConfig& config = core_->config();
  if (num_requests > capacity()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the call makes ", num_requests, " requests, but at most ", config.scheduler.max_num_seqs,
        " run and ", config.max_queued_requests, " wait"));
  }
  if (in_flight_.size() + num_requests > capacity()) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the queue is full: ", in_flight_.size(), " requests in flight, at most ",
        config.scheduler.max_num_seqs, " running and ", config.max_queued_requests, " waiting"));
  }
  if (queued_tokens_ > 0 && queued_tokens_ + prompt_tokens > config.max_queued_tokens) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the queue is full: prompts of ", queued_tokens_, " tokens wait, and with these ",
        prompt_tokens, " they would exceed ", config.max_queued_tokens, " (--max-queued-tokens)"));
  }
  return absl::OkStatus();
}

void EngineLoop::LeaveQueue(const std::vector<Delivery>& deliveries) {
  for (const auto& [handle, stream, update] : deliveries) {
    if (update.tokens.empty() || update.usage.completion_tokens != update.tokens.size()) continue;
    MutexLock lock(mutex_);
    const auto found = in_flight_.find(handle);
    if (found != in_flight_.end()) LeaveQueue(found->second);
  }
}

void EngineLoop::LeaveQueue(InFlight& request) {
  queued_tokens_ -= std::exchange(request.queued_tokens, 0);
}

void EngineLoop::Cancel(RequestHandle handle) {
  MutexLock lock(mutex_);
  auto found = in_flight_.find(handle);
  if (!Computes() || found == in_flight_.end() || found->second.ending) return;
  found->second.ending = true;
  Push(handle, Cancelled{});
}

absl::Status EngineLoop::ResetPrefixCache() {
  MutexLock lock(mutex_);
  if (absl::Status status = Refusal(); !status.ok()) return status;
  if (!std::exchange(reset_is_pending_, true)) Push(0, PrefixCacheReset{});
  return absl::OkStatus();
}

absl::Status EngineLoop::Refusal() const {
  if (state_ == State::kLost) return absl::UnavailableError(lost_message_);
  if (state_ != State::kServing) return absl::UnavailableError(kStoppingMessage);
  return absl::OkStatus();
}

void EngineLoop::Release(RequestHandle handle, bool stopped) {
  MutexLock lock(mutex_);
  auto found = in_flight_.find(handle);
  if (found == in_flight_.end()) return;  // stopped before; these were late tokens
  if (stopped && !found->second.ending && Computes()) Push(handle, Stopped{});
  LeaveQueue(found->second);
  ids_in_flight_.erase(found->second.id);
  in_flight_.erase(found);
  ReportDrained();
}

void EngineLoop::Push(RequestHandle handle, Event event) {
  const bool pushed = inbox_.TryPush({.handle = handle, .event = std::move(event)});
  TANDEM_CHECK(pushed) << "the inbox has room for three events of every request";
}

EngineStats EngineLoop::Stats() const {
  MutexLock lock(mutex_);
  return stats_;
}

EngineStepTimings EngineLoop::Timings() const {
  MutexLock lock(mutex_);
  return timings_;
}

void EngineLoop::ShowLife() {
  due_.store(clock_.Now() + core_->config().step_timeout + kLifeMargin, std::memory_order_relaxed);
}

bool EngineLoop::Late() const { return clock_.Now() > due_.load(std::memory_order_relaxed); }

EngineLoop::State EngineLoop::state() const {
  MutexLock lock(mutex_);
  return state_;
}

void EngineLoop::Run() {
  Deadline next_check = Deadline::After(kIntegrityInterval, clock_);
  while (true) {
    ShowLife();
    HandleInbox();
    if (state() == State::kStopping) return EndAll(absl::OkStatus(), FinishReason::kCancelled);
    const bool is_idle = core_->idle();
    if (absl::Status status = is_idle ? core_->Heartbeat() : core_->Step(); !status.ok()) {
      if (!Recover(status)) return;
      continue;
    }
    PublishStats();
    if (!is_idle) continue;
    inbox_.WaitNonEmpty(Deadline::After(kIdleWait, clock_));
    if (!next_check.Passed()) continue;
    if (absl::Status status = CheckIdle(); !status.ok()) {
      core_->AbortWorkers(status);
      return Lose(status);
    }
    next_check = Deadline::After(kIntegrityInterval, clock_);
  }
}

absl::Status EngineLoop::CheckIdle() const {
  if (core_->Stats().total_blocks > kMostCheckedBlocks) return absl::OkStatus();
  absl::Status status = core_->CheckIntegrity();
  if (status.ok()) return status;
  return absl::UnavailableError(absl::StrCat("KV cache accounting: ", status.message()));
}

void EngineLoop::EndAll(const absl::Status& status, FinishReason reason) {
  HandleInbox();  // the last events: Add and Cancel check the state first
  core_->EndAll(status, reason);
  PublishStats();
}

void EngineLoop::HandleInbox() {
  for (InboxEvent& item : inbox_.Drain()) {
    if (auto* request = std::get_if<Request>(&item.event)) {
      core_->Add(std::move(*request), item.handle);
    } else if (std::holds_alternative<Cancelled>(item.event)) {
      core_->Cancel(item.handle);
    } else if (std::holds_alternative<PrefixCacheReset>(item.event)) {
      HandleReset();
    } else {
      core_->Stop(item.handle);
    }
  }
}

void EngineLoop::HandleReset() {
  {
    MutexLock lock(mutex_);
    reset_is_pending_ = false;
  }
  core_->ResetPrefixCache();
}

void EngineLoop::PublishStats() {
  MutexLock lock(mutex_);
  stats_ = core_->Stats();
  timings_ = core_->timings();
}

bool EngineLoop::Recover(const absl::Status& loss) {
  const TimePoint begin = clock_.Now();
  core_->Rewind(loss);
  PublishStats();
  absl::Status final_loss = loss;
  if (recover_) {
    absl::StatusOr<ReadyWorkers> workers = recover_(loss, [this] {
      ShowLife();
      core_->EndExpired();
      HandleInbox();
      PublishStats();
      return state() == State::kStopping;
    });
    if (workers.ok()) {
      const Duration pause = clock_.Now() - begin;
      core_->Resume(std::move(*workers), pause);
      PublishStats();
      TANDEM_LOG(kInfo) << "serving again, after a pause of "
                        << absl::FormatDuration(
                               absl::Trunc(absl::FromChrono(pause), absl::Milliseconds(1)));
      return true;
    }
    final_loss = workers.status();
  }
  Lose(final_loss);
  return false;
}

void EngineLoop::Lose(const absl::Status& status) {
  {
    MutexLock lock(mutex_);
    if (Computes()) {
      lost_message_ = std::string(status.message());
      Transition(State::kLost);
    }
  }
  // Workers may exit first if all processes are told to stop.
  if (state() == State::kStopping) return EndAll(absl::OkStatus(), FinishReason::kCancelled);
  TANDEM_LOG(kError) << "engine lost: " << status.message();
  EndAll(absl::UnavailableError(status.message()), FinishReason::kNone);
  if (on_lost_) on_lost_(status);
}

void EngineLoop::StopAdmission(std::function<void()> on_drained) {
  MutexLock lock(mutex_);
  if (state_ != State::kServing) return;
  Transition(State::kDraining);
  on_drained_ = std::move(on_drained);
  ReportDrained();
}

void EngineLoop::ReportDrained() {
  if (state_ != State::kDraining || !in_flight_.empty() || on_drained_ == nullptr) return;
  std::exchange(on_drained_, nullptr)();
}

bool EngineLoop::Computes() const {
  return state_ == State::kServing || state_ == State::kDraining;
}

void EngineLoop::Stop() {
  {
    MutexLock lock(mutex_);
    if (Computes()) Transition(State::kStopping);
  }
  inbox_.Close();  // wakes the thread
}

void EngineLoop::Shutdown() {
  MutexLock shutdown_lock(shutdown_mutex_);
  if (state() == State::kStopped) return;
  TANDEM_CHECK(std::this_thread::get_id() != thread_.get_id()) << "Shutdown on the engine thread";
  Stop();
  if (thread_.joinable()) thread_.join();
  writers_.Close();
  MutexLock lock(mutex_);
  Transition(State::kStopped);
}

void EngineLoop::Transition(State to) {
  const bool allowed = (state_ == State::kServing && to == State::kDraining) ||
                       (Computes() && (to == State::kStopping || to == State::kLost)) ||
                       (state_ == State::kStopping && to == State::kStopped) ||
                       (state_ == State::kLost && to == State::kStopped);
  TANDEM_CHECK(allowed) << "engine state " << static_cast<int>(state_) << " to "
                        << static_cast<int>(to);
  state_ = to;
}

}  // namespace tandem::coordinator
