#include "tests/load/simulated_run.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/config/text_form.h"
#include "coordinator/simulation/paced_worker.h"

namespace tandem::load {
namespace {

std::unique_ptr<coordinator::EngineCore> MakeCore(const SimulatedServer& server,
                                                  const Clock& clock) {
  std::vector<std::unique_ptr<coordinator::WorkerClient>> workers;
  workers.push_back(std::make_unique<coordinator::PacedWorker>(server.steps, clock));
  return std::make_unique<coordinator::EngineCore>(
      server.engine, coordinator::WorkerGroup(std::move(workers)), clock);
}

}  // namespace

// Reads one answer.
class SimulatedRun::Client final : public coordinator::TokenStream {
 public:
  Client(coordinator::EngineLoop& engine, SampleRecorder& recorder)
      : engine_(engine), recorder_(recorder) {}

  void set_handle(coordinator::RequestHandle handle) { handle_ = handle; }

  coordinator::Taken OnUpdate(coordinator::StreamUpdate update) override {
    usage_ = {update.usage.prompt_tokens, update.usage.completion_tokens};
    const auto num_tokens = static_cast<uint32_t>(update.tokens.size());
    if (!hung_up_ && num_tokens > 0 && recorder_.OnTokens(num_tokens) == Next::kCancel) {
      hung_up_ = true;
      engine_.Cancel(handle_);
    }
    if (update.last()) {
      end_ = update.reason == coordinator::FinishReason::kCancelled
                 ? absl::CancelledError("the server stops")
                 : update.status;
    }
    return {};
  }

  // The place of a request that has ended is free by now.
  void Flush() override {
    if (end_.has_value() && !std::exchange(told_, true)) recorder_.OnEnd(*end_, usage_);
  }

 private:
  coordinator::EngineLoop& engine_;
  SampleRecorder& recorder_;
  coordinator::RequestHandle handle_ = 0;
  ServerUsage usage_;
  bool hung_up_ = false;
  std::optional<absl::Status> end_;
  bool told_ = false;
};

SimulatedRun::SimulatedRun(const SimulatedServer& server, const std::vector<LoadRequest>& requests,
                           const RunSettings& settings, int32_t priority, Duration stats_interval)
    : requests_(requests),
      settings_(settings),
      priority_(priority),
      stats_interval_(stats_interval),
      engine_(
          MakeCore(server, clock_),
          [this, &server](const absl::Status& loss) {
            record_.end = RunEnd::kServerLost;
            record_.end_reason =
                absl::StrCat("the simulated server is lost: ", loss.message(), "; step-timeout is ",
                             config::ToText(server.engine.step_timeout));
          },
          nullptr, /*num_writers=*/0, clock_) {
  clock_.set_before_wait([this] { BeforeWait(); });
}

SimulatedRun::~SimulatedRun() = default;

double SimulatedRun::Now() const {
  return std::chrono::duration<double>(clock_.Now() - start_).count();
}

void SimulatedRun::BeforeWait() {
  engine_.Write();
  if (stop_ && record_.end == RunEnd::kDone) {
    record_.end = RunEnd::kInterrupted;
    record_.end_reason = "interrupted";
    over_ = true;
    engine_.Stop();
  }
}

TimePoint SimulatedRun::IntendedTime(size_t request) const {
  return start_ + FromSeconds(settings_.times_s.empty() ? 0 : settings_.times_s[request]);
}

void SimulatedRun::SetTimer(TimePoint when) {
  if (timer_ == when) return;
  timer_ = when;
  clock_.At(when, [this] { Continue(); });
}

void SimulatedRun::Continue() {
  const size_t next = recorders_.size();
  over_ = over_ || next == requests_.size() ||
          std::max(IntendedTime(next), clock_.Now()) > start_ + settings_.max_duration;
  if (over_) {
    if (in_flight_ == 0) engine_.Stop();
    return;
  }
  if (const TimePoint when = IntendedTime(next); when > clock_.Now()) return SetTimer(when);
  if (in_flight_ >= settings_.max_concurrency.value_or(UINT32_MAX)) return;
  const double intended_s = settings_.times_s.empty() ? 0 : settings_.times_s[next];
  Send(requests_[next], settings_.closed_loop() ? Now() : intended_s);
  clock_.After(Duration{}, [this] { Continue(); });
}

void SimulatedRun::Send(const LoadRequest& request, double intended_s) {
  SampleRecorder& recorder = recorders_.emplace_back(*this, request, intended_s);
  ++in_flight_;
  if (!std::exchange(has_stats_timer_, true)) clock_.After(Duration{}, [this] { AddStats(); });
  auto client = std::make_shared<Client>(engine_, recorder);
  coordinator::Request sent;
  sent.id = absl::StrCat(recorders_.size());
  sent.prompt = request.token_ids;
  sent.sampling.max_tokens = request.output_tokens;
  sent.deadline = clock_.Now() + settings_.request_timeout;
  sent.priority = priority_;
  sent.stream = client;
  const auto handle = engine_.Add(std::move(sent));
  if (!handle.ok()) return recorder.OnEnd(handle.status(), {});
  client->set_handle(*handle);
}

void SimulatedRun::OnRequestEnd(const absl::Status&) {
  --in_flight_;
  clock_.After(Duration{}, [this] { Continue(); });
}

void SimulatedRun::AddStats() {
  const coordinator::EngineStats stats = engine_.Stats();
  record_.stats.push_back({.at_s = Now(),
                           .waiting = stats.waiting,
                           .running = stats.running,
                           .kv_used = static_cast<double>(stats.total_blocks - stats.free_blocks) /
                                      static_cast<double>(stats.total_blocks)});
  has_stats_timer_ = in_flight_ > 0;
  if (has_stats_timer_) clock_.After(stats_interval_, [this] { AddStats(); });
}

RunRecord SimulatedRun::Run() {
  clock_.After(Duration{}, [this] { Continue(); });
  engine_.Run();
  engine_.Shutdown();  // requests in flight after an early end are told
  record_.max_concurrency = settings_.max_concurrency;
  CollectSamples(recorders_, requests_.size(), record_);
  return std::move(record_);
}

}  // namespace tandem::load
