#include "coordinator/engine/engine_core.h"

#include <chrono>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status.h"
#include "coordinator/engine/result_check.h"

namespace tandem::coordinator {
namespace {

// Adds the time since the last lap to a counter.
class Stopwatch {
 public:
  void Lap(int64_t& counter_ns) {
    const auto now = std::chrono::steady_clock::now();
    counter_ns += std::chrono::duration_cast<std::chrono::nanoseconds>(now - last_).count();
    last_ = now;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// A scored prompt token takes a row of the step's result, which is bounded.
SchedulerConfig WithScoredTokens(const EngineConfig& config) {
  SchedulerConfig scheduler = config.scheduler;
  scheduler.max_scored_tokens = config.MaxScoredTokens();
  return scheduler;
}

// The row's log-probabilities: the token's own comes first.
TokenLogprobs ToTokenLogprobs(std::vector<step::TokenLogprob> values) {
  TokenLogprobs logprobs{.token = values.front()};
  values.erase(values.begin());
  logprobs.top = std::move(values);
  return logprobs;
}

}  // namespace

EngineCore::EngineCore(EngineConfig config, WorkerGroup workers)
    : config_(std::move(config)),
      workers_(std::move(workers)),
      kv_(config_.kv_cache),
      scheduler_(WithScoredTokens(config_), kv_),
      builder_(config_.kv_cache.block_size, static_cast<uint32_t>(config_.kv_cache.groups.size())) {
  TANDEM_CHECK_OK(config_.Validate());
}

void EngineCore::Add(Request request, uint64_t arrival) {
  auto generation = std::make_unique<Generation>(arrival, std::move(request));
  scheduler_.Enqueue(*generation);
  const bool is_new = generations_.emplace(arrival, std::move(generation)).second;
  TANDEM_CHECK(is_new) << "arrival " << arrival << " twice";
}

absl::Status EngineCore::Step() {
  Stopwatch watch;
  const Plan plan = scheduler_.Schedule();
  if (plan.entries.empty()) return absl::OkStatus();
  watch.Lap(timings_.schedule_ns);

  const step::StepDescriptor& step = builder_.Build(plan, StepId{++last_step_}, config_.epoch);
  watch.Lap(timings_.build_ns);

  const Deadline deadline = Deadline::After(config_.step_timeout);
  TANDEM_RETURN_IF_ERROR(workers_.Submit(step, deadline));
  watch.Lap(timings_.submit_ns);

  TANDEM_ASSIGN_OR_RETURN(step::StepResult result, workers_.Collect(deadline));
  TANDEM_RETURN_IF_ERROR(CheckResult(step, result, config_.vocab_size));
  watch.Lap(timings_.wait_ns);

  Apply(plan, step, std::move(result));
  watch.Lap(timings_.apply_ns);
  ++timings_.steps;
  return absl::OkStatus();
}

void EngineCore::Apply(const Plan& plan, const step::StepDescriptor& step,
                       step::StepResult result) {
  scheduler_.Commit(plan);
  size_t row = 0;
  for (size_t entry = 0; entry < plan.entries.size(); ++entry) {
    Generation& generation = GenerationOf(*plan.entries[entry].sequence);
    Delivery delivery{.arrival = generation.arrival};
    const size_t first = row;
    while (row < step.rows.size() && step.rows[row].token < step.query_offsets[entry + 1]) {
      ApplyRow(step.rows[row], std::move(result.rows[row]), generation, delivery);
      ++row;
    }
    if (row > first) deliveries_.push_back(std::move(delivery));
  }
  TANDEM_CHECK(row == step.rows.size());
  Deliver();
}

void EngineCore::ApplyRow(const step::RowRequest& wanted, step::RowResult row,
                          Generation& generation, Delivery& delivery) {
  if ((wanted.wants & step::kWantSample) == 0) {
    delivery.prompt_logprobs.push_back(ToTokenLogprobs(std::move(row.logprobs)));
    ++generation.num_scored;
    return;
  }
  const TokenId token = row.tokens[0];
  generation.tokens.push_back(token);
  if (generation.request.logits_sink != nullptr) {
    generation.request.logits_sink->push_back(std::move(row.logits));
  }
  delivery.token.emplace(token);
  if (!row.logprobs.empty()) delivery.token->logprobs = ToTokenLogprobs(std::move(row.logprobs));
  delivery.reason = generation.ReasonToEnd(token, config_.scheduler.max_model_len);
}

EngineStats EngineCore::Stats() const {
  const KvCacheStats kv = kv_.Stats();
  return {.blocks_total = kv.total_blocks,
          .blocks_free = kv.free_blocks,
          .blocks_cached = kv.cached_blocks,
          .running = static_cast<int64_t>(scheduler_.num_running()),
          .waiting = static_cast<int64_t>(scheduler_.num_waiting()),
          .preemptions = scheduler_.num_preemptions(),
          .steps = timings_.steps,
          .epoch = static_cast<int64_t>(config_.epoch.value)};
}

absl::Status EngineCore::CheckIntegrity() const {
  if (generations_.size() != scheduler_.num_running() + scheduler_.num_waiting()) {
    return absl::InternalError(absl::StrCat(generations_.size(), " generations, ",
                                            scheduler_.num_running(), " running and ",
                                            scheduler_.num_waiting(), " waiting"));
  }
  return scheduler_.CheckIntegrity();
}

}  // namespace tandem::coordinator
