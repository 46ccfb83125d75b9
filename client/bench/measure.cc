#include "client/bench/measure.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/bench/median.h"
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
  return static_cast<double>(tokens) /
         std::chrono::duration<double>(Median(std::move(times))).count();
}

}  // namespace

// Keeps the tokens; a generation that ends in any other way than by its length is an error.
class Measure::Listener : public coordinator::TokenStream {
 public:
  coordinator::Taken OnUpdate(coordinator::StreamUpdate update) override {
    tokens_.insert(tokens_.end(), update.tokens.begin(), update.tokens.end());
    ended_ = update.reason == FinishReason::kLength;
    status_ = update.last() && !ended_ && update.status.ok()
                  ? absl::InternalError("the engine ended a sequence early")
                  : update.status;
    return {};
  }
  void Flush() override {}

  absl::Status Expect(uint32_t num_tokens, bool ended) const {
    TANDEM_RETURN_IF_ERROR(status_);
    if (tokens_.size() == num_tokens && ended_ == ended) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("a sequence has ", tokens_.size(), " tokens and is ",
                                            ended_ ? "" : "not ", "over, expected ", num_tokens));
  }
  const std::vector<TokenId>& tokens() const { return tokens_; }

 private:
  std::vector<TokenId> tokens_;
  bool ended_ = false;
  absl::Status status_;
};

coordinator::Request Measure::MakeRequest(uint32_t prompt_tokens, uint32_t max_tokens) {
  coordinator::Request request;
  std::uniform_int_distribution<TokenId> ids(0,
                                             static_cast<TokenId>(engine_.config().vocab_size) - 1);
  for (uint32_t i = 0; i < prompt_tokens; ++i) request.prompt.push_back(ids(random_));
  request.sampling.temperature = 0;
  request.sampling.max_tokens = max_tokens;
  return request;
}

std::vector<coordinator::Request> Measure::DecodeRequests(uint32_t batch, uint32_t tokens) {
  std::vector<coordinator::Request> requests;
  for (uint32_t i = 0; i < batch; ++i) requests.push_back(MakeRequest(context_, 1 + tokens));
  return requests;
}

std::shared_ptr<Measure::Listener> Measure::Add(coordinator::Request request) {
  request.id = absl::StrCat("bench-", ++last_arrival_);
  auto listener = std::make_shared<Listener>();
  request.stream = listener;
  engine_.Add(std::move(request), last_arrival_);
  return listener;
}

absl::StatusOr<Duration> Measure::Time(uint32_t num_steps, EngineStepTimings& timings) {
  const EngineStepTimings before = engine_.timings();
  const TimePoint start = clock_.Now();
  for (uint32_t i = 0; i < num_steps && !engine_.idle(); ++i) {
    TANDEM_RETURN_IF_ERROR(engine_.Step());
  }
  const Duration time = std::chrono::duration_cast<Duration>(clock_.Now() - start);
  AddDifference(before, engine_.timings(), timings);
  return time;
}

absl::StatusOr<Duration> Measure::RunPrefill(uint32_t tokens, EngineStepTimings& timings) {
  const std::shared_ptr<Listener> listener = Add(MakeRequest(tokens, /*max_tokens=*/1));
  TANDEM_ASSIGN_OR_RETURN(const Duration time, Time(1, timings));
  TANDEM_RETURN_IF_ERROR(listener->Expect(1, /*ended=*/true));
  return time;
}

absl::StatusOr<Duration> Measure::RunDecode(const std::vector<coordinator::Request>& requests,
                                            uint32_t tokens, EngineStepTimings& timings,
                                            std::vector<std::vector<TokenId>>& answers) {
  std::vector<std::shared_ptr<Listener>> listeners;
  for (const coordinator::Request& request : requests) listeners.push_back(Add(request));
  TANDEM_RETURN_IF_ERROR(engine_.Step());  // all prompts, and the first token of each
  for (const auto& listener : listeners) {
    TANDEM_RETURN_IF_ERROR(listener->Expect(1, /*ended=*/false));
  }
  TANDEM_ASSIGN_OR_RETURN(const Duration time, Time(tokens, timings));
  answers.clear();
  for (const auto& listener : listeners) {
    TANDEM_RETURN_IF_ERROR(listener->Expect(1 + tokens, /*ended=*/true));
    answers.push_back(listener->tokens());
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

absl::Status Measure::WarmUp(uint32_t batch, uint32_t tokens) {
  EngineStepTimings timings;
  std::vector<std::vector<TokenId>> answers;
  const uint32_t few = std::min(tokens, kWarmUpTokens);
  return RunDecode(DecodeRequests(batch, few), few, timings, answers).status();
}

absl::StatusOr<Measurement> Measure::Decode(uint32_t batch, uint32_t tokens, uint32_t repetitions) {
  TANDEM_RETURN_IF_ERROR(WarmUp(batch, tokens));
  Measurement measurement;
  std::vector<Duration> times;
  std::vector<std::vector<TokenId>> answers;
  for (uint32_t i = 0; i < repetitions; ++i) {
    TANDEM_ASSIGN_OR_RETURN(times.emplace_back(), RunDecode(DecodeRequests(batch, tokens), tokens,
                                                            measurement.timings, answers));
  }
  measurement.tokens_per_second =
      TokensPerSecond(static_cast<uint64_t>(batch) * tokens, std::move(times));
  return measurement;
}

absl::StatusOr<Duration> Measure::SeveralPrompts(uint32_t prompts, uint32_t tokens,
                                                 uint32_t repetitions) {
  std::vector<Duration> times;
  for (uint32_t i = 0; i <= repetitions; ++i) {
    std::vector<std::shared_ptr<Listener>> listeners;
    for (uint32_t p = 0; p < prompts; ++p) listeners.push_back(Add(MakeRequest(tokens, 1)));
    EngineStepTimings timings;
    TANDEM_ASSIGN_OR_RETURN(const Duration time, Time(1, timings));
    for (const auto& listener : listeners) {
      TANDEM_RETURN_IF_ERROR(listener->Expect(1, /*ended=*/true));
    }
    if (i > 0) times.push_back(time);
  }
  return Median(std::move(times));
}

absl::StatusOr<LongMeasurement> Measure::RunLong(uint32_t prompt_tokens, uint32_t tokens) {
  EngineStepTimings timings;
  std::vector<std::vector<TokenId>> answers;
  TANDEM_ASSIGN_OR_RETURN(const Duration short_time,
                          RunDecode(DecodeRequests(1, tokens), tokens, timings, answers));
  const std::shared_ptr<Listener> listener = Add(MakeRequest(prompt_tokens, 1 + tokens));
  const TimePoint start = clock_.Now();
  while (listener->tokens().empty() && !engine_.idle()) TANDEM_RETURN_IF_ERROR(engine_.Step());
  const Duration prefill = clock_.Now() - start;
  TANDEM_RETURN_IF_ERROR(listener->Expect(1, /*ended=*/false));
  TANDEM_ASSIGN_OR_RETURN(const Duration long_time, Time(tokens, timings));
  TANDEM_RETURN_IF_ERROR(listener->Expect(1 + tokens, /*ended=*/true));
  return LongMeasurement{.prefill = prefill, .decode_step_more = (long_time - short_time) / tokens};
}

absl::StatusOr<LongMeasurement> Measure::Long(uint32_t prompt_tokens, uint32_t tokens,
                                              uint32_t repetitions) {
  std::vector<Duration> prefills, more;
  for (uint32_t i = 0; i < repetitions; ++i) {
    TANDEM_ASSIGN_OR_RETURN(const LongMeasurement one, RunLong(prompt_tokens, tokens));
    prefills.push_back(one.prefill);
    more.push_back(one.decode_step_more);
  }
  return LongMeasurement{.prefill = Median(std::move(prefills)),
                         .decode_step_more = Median(std::move(more))};
}

absl::StatusOr<DraftMeasurement> Measure::Drafts(uint32_t batch, uint32_t tokens, double acceptance,
                                                 uint32_t repetitions) {
  TANDEM_RETURN_IF_ERROR(WarmUp(batch, tokens));
  EngineStepTimings timings;
  std::vector<Duration> times;
  std::vector<double> ratios;
  const coordinator::EngineStats before = engine_.Stats();
  for (uint32_t i = 0; i < repetitions; ++i) {
    std::vector<std::vector<TokenId>> answers;
    std::vector<coordinator::Request> requests = DecodeRequests(batch, tokens);
    for (coordinator::Request& request : requests) request.sampling.speculation = false;
    TANDEM_ASSIGN_OR_RETURN(const Duration without, RunDecode(requests, tokens, timings, answers));
    for (size_t r = 0; r < requests.size(); ++r) {
      coordinator::DraftScript script{
          .tokens = requests[r].prompt, .acceptance = acceptance, .seed = random_()};
      script.tokens.insert(script.tokens.end(), answers[r].begin(), answers[r].end());
      requests[r].draft_script = std::move(script);
      requests[r].sampling.speculation = true;
    }
    TANDEM_ASSIGN_OR_RETURN(times.emplace_back(), RunDecode(requests, tokens, timings, answers));
    ratios.push_back(std::chrono::duration<double>(without) /
                     std::chrono::duration<double>(times.back()));
  }
  const coordinator::EngineStats after = engine_.Stats();
  return DraftMeasurement{
      .ratio = Median(ratios),
      .least_ratio = *std::ranges::min_element(ratios),
      .most_ratio = *std::ranges::max_element(ratios),
      .tokens_per_second = TokensPerSecond(uint64_t{batch} * tokens, std::move(times)),
      .drafts = after.drafts - before.drafts,
      .accepted = after.accepted_drafts - before.accepted_drafts};
}

}  // namespace tandem::client
