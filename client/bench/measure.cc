#include "client/bench/measure.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/bench/bench_options.h"
#include "common/base/status.h"

namespace tandem::client {
namespace {

using coordinator::EngineStepTimings;
using coordinator::FinishReason;

constexpr uint32_t kWarmUpTokens = 4;  // of a decode measurement

void AddDifference(const EngineStepTimings& before, const EngineStepTimings& after,
                   EngineStepTimings& sum) {
  sum.steps += after.steps - before.steps;
  sum.schedule_ns += after.schedule_ns - before.schedule_ns;
  sum.build_ns += after.build_ns - before.build_ns;
  sum.submit_ns += after.submit_ns - before.submit_ns;
  sum.wait_ns += after.wait_ns - before.wait_ns;
  sum.apply_ns += after.apply_ns - before.apply_ns;
  sum.idle_ns += after.idle_ns - before.idle_ns;
}

double TokensPerSecond(uint64_t tokens, std::vector<Duration> times) {
  std::sort(times.begin(), times.end());
  const size_t half = times.size() / 2;
  const Duration median = times.size() % 2 == 1 ? times[half] : (times[half - 1] + times[half]) / 2;
  return static_cast<double>(tokens) / std::chrono::duration<double>(median).count();
}

}  // namespace

// Counts; a generation that ends in any other way than by its length is an error.
class Measure::Listener : public coordinator::TokenStream {
 public:
  bool OnUpdate(coordinator::StreamUpdate update) override {
    num_tokens_ += static_cast<uint32_t>(update.tokens.size());
    ended_ = update.reason == FinishReason::kLength;
    status_ = update.last() && !ended_ && update.status.ok()
                  ? absl::InternalError("the engine ended a sequence early")
                  : update.status;
    return true;
  }
  void Flush() override {}

  absl::Status Expect(uint32_t num_tokens, bool ended) const {
    TANDEM_RETURN_IF_ERROR(status_);
    if (num_tokens_ == num_tokens && ended_ == ended) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("a sequence has ", num_tokens_, " tokens and is ",
                                            ended_ ? "" : "not ", "over, expected ", num_tokens));
  }

 private:
  uint32_t num_tokens_ = 0;
  bool ended_ = false;
  absl::Status status_;
};

std::shared_ptr<Measure::Listener> Measure::Add(uint32_t prompt_tokens, uint32_t max_tokens) {
  coordinator::Request request;
  request.id = absl::StrCat("bench-", ++last_arrival_);
  std::uniform_int_distribution<TokenId> ids(0,
                                             static_cast<TokenId>(engine_.config().vocab_size) - 1);
  for (uint32_t i = 0; i < prompt_tokens; ++i) request.prompt.push_back(ids(random_));
  request.sampling.temperature = 0;
  request.sampling.max_tokens = max_tokens;
  auto listener = std::make_shared<Listener>();
  request.stream = listener;
  engine_.Add(std::move(request), last_arrival_);
  return listener;
}

absl::StatusOr<Duration> Measure::Time(uint32_t num_steps, EngineStepTimings& timings) {
  const EngineStepTimings before = engine_.timings();
  const TimePoint start = clock_.Now();
  for (uint32_t i = 0; i < num_steps; ++i) TANDEM_RETURN_IF_ERROR(engine_.Step());
  const Duration time = std::chrono::duration_cast<Duration>(clock_.Now() - start);
  AddDifference(before, engine_.timings(), timings);
  return time;
}

absl::StatusOr<Duration> Measure::RunPrefill(uint32_t tokens, EngineStepTimings& timings) {
  const std::shared_ptr<Listener> listener = Add(tokens, /*max_tokens=*/1);
  TANDEM_ASSIGN_OR_RETURN(const Duration time, Time(1, timings));
  TANDEM_RETURN_IF_ERROR(listener->Expect(1, /*ended=*/true));
  return time;
}

absl::StatusOr<Duration> Measure::RunDecode(uint32_t batch, uint32_t tokens,
                                            EngineStepTimings& timings) {
  std::vector<std::shared_ptr<Listener>> listeners;
  for (uint32_t i = 0; i < batch; ++i) listeners.push_back(Add(kDecodeContext, 1 + tokens));
  TANDEM_RETURN_IF_ERROR(engine_.Step());  // all prompts, and the first token of each
  for (const auto& listener : listeners) {
    TANDEM_RETURN_IF_ERROR(listener->Expect(1, /*ended=*/false));
  }
  TANDEM_ASSIGN_OR_RETURN(const Duration time, Time(tokens, timings));
  for (const auto& listener : listeners) {
    TANDEM_RETURN_IF_ERROR(listener->Expect(1 + tokens, /*ended=*/true));
  }
  return time;
}

absl::StatusOr<Measurement> Measure::Prefill(uint32_t tokens, uint32_t repetitions) {
  EngineStepTimings warm_up;
  TANDEM_RETURN_IF_ERROR(RunPrefill(tokens, warm_up).status());
  Measurement measurement;
  std::vector<Duration> times;
  for (uint32_t i = 0; i < repetitions; ++i) {
    TANDEM_ASSIGN_OR_RETURN(times.emplace_back(), RunPrefill(tokens, measurement.timings));
  }
  measurement.tokens_per_second = TokensPerSecond(tokens, std::move(times));
  return measurement;
}

absl::StatusOr<Measurement> Measure::Decode(uint32_t batch, uint32_t tokens, uint32_t repetitions) {
  EngineStepTimings warm_up;
  TANDEM_RETURN_IF_ERROR(RunDecode(batch, std::min(tokens, kWarmUpTokens), warm_up).status());
  Measurement measurement;
  std::vector<Duration> times;
  for (uint32_t i = 0; i < repetitions; ++i) {
    TANDEM_ASSIGN_OR_RETURN(times.emplace_back(), RunDecode(batch, tokens, measurement.timings));
  }
  measurement.tokens_per_second =
      TokensPerSecond(static_cast<uint64_t>(batch) * tokens, std::move(times));
  return measurement;
}

}  // namespace tandem::client
