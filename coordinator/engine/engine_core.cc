#include "coordinator/engine/engine_core.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status.h"

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

}  // namespace

EngineCore::EngineCore(EngineConfig config, WorkerGroup workers)
    : config_(std::move(config)),
      workers_(std::move(workers)),
      kv_(config_.kv_cache),
      scheduler_(config_.scheduler, kv_),
      builder_(config_.kv_cache.block_size, static_cast<uint32_t>(config_.kv_cache.groups.size())) {
  TANDEM_CHECK_OK(config_.Validate());
}

void EngineCore::Add(Request request, uint64_t arrival) {
  auto generation = std::make_unique<Generation>(arrival, std::move(request));
  scheduler_.Enqueue(*generation);
  const bool is_new = generations_.emplace(arrival, std::move(generation)).second;
  TANDEM_CHECK(is_new) << "arrival " << arrival << " twice";
}

void EngineCore::Cancel(uint64_t arrival) {
  if (!generations_.contains(arrival)) return;
  const std::unique_ptr<Generation> generation = Leave(arrival);
  generation->request.stream->OnEnd(absl::OkStatus(), FinishReason::kCancelled,
                                    generation->usage());
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
  TANDEM_RETURN_IF_ERROR(CheckRows(plan, result));
  watch.Lap(timings_.wait_ns);

  Apply(plan, std::move(result));
  watch.Lap(timings_.apply_ns);
  ++timings_.steps;
  return absl::OkStatus();
}

// A worker is another program: what it says is checked, and believed only then.
absl::Status EngineCore::CheckRows(const Plan& plan, const step::StepResult& result) const {
  const auto samples = std::ranges::count_if(plan.entries, &PlanEntry::samples);
  if (result.rows.size() != static_cast<size_t>(samples)) {
    return absl::UnavailableError(absl::StrCat("rank 0 answered ", result.rows.size(), " rows of ",
                                               samples, " in step ", last_step_));
  }
  size_t next_row = 0;
  for (const PlanEntry& entry : plan.entries) {
    if (!entry.samples) continue;
    const step::RowResult& row = result.rows[next_row++];
    const bool is_token = row.tokens.size() == 1 && row.tokens[0] >= 0 &&
                          static_cast<uint32_t>(row.tokens[0]) < config_.vocab_size;
    const size_t logits =
        GenerationOf(*entry.sequence).request.want_logits ? config_.vocab_size : 0;
    if (is_token && row.logits.size() == logits) continue;
    return absl::UnavailableError(absl::StrCat(
        "rank 0 answered row ", next_row - 1, " of step ", last_step_, " with ", row.tokens.size(),
        " tokens", row.tokens.empty() ? "" : absl::StrCat(", the first ", row.tokens[0]), ", and ",
        row.logits.size(), " logits"));
  }
  return absl::OkStatus();
}

void EngineCore::Apply(const Plan& plan, step::StepResult result) {
  scheduler_.Commit(plan);
  size_t next_row = 0;
  for (const PlanEntry& entry : plan.entries) {
    if (!entry.samples) continue;
    Generation& generation = GenerationOf(*entry.sequence);
    step::RowResult& row = result.rows[next_row++];
    const TokenId token = row.tokens[0];
    generation.tokens.push_back(token);
    if (generation.request.logits_sink != nullptr) {
      generation.request.logits_sink->push_back(std::move(row.logits));
    }
    deliveries_.push_back(
        {.arrival = generation.arrival,
         .token = token,
         .reason = generation.ReasonToEnd(token, config_.scheduler.max_model_len)});
  }
  Deliver();
}

void EngineCore::Deliver() {
  for (const Delivery& delivery : deliveries_) {
    auto found = generations_.find(delivery.arrival);
    if (found == generations_.end()) continue;
    if (delivery.reason == FinishReason::kNone) {
      const Generation& generation = *found->second;
      const bool goes_on = generation.request.stream->OnToken(delivery.token, FinishReason::kNone,
                                                              generation.usage());
      if (!goes_on) Leave(delivery.arrival);
    } else {
      const std::unique_ptr<Generation> generation = Leave(delivery.arrival);
      generation->request.stream->OnToken(delivery.token, delivery.reason, generation->usage());
    }
  }
  deliveries_.clear();
}

std::unique_ptr<Generation> EngineCore::Leave(uint64_t arrival) {
  auto node = generations_.extract(arrival);
  TANDEM_CHECK(!node.empty());
  std::unique_ptr<Generation> generation = std::move(node.mapped());
  scheduler_.Finish(*generation);
  if (on_leave_) on_leave_(*generation);
  return generation;
}

void EngineCore::EndAll(const absl::Status& status, FinishReason reason) {
  std::vector<uint64_t> arrivals;
  for (const auto& [arrival, generation] : generations_) arrivals.push_back(arrival);
  std::ranges::sort(arrivals);
  for (uint64_t arrival : arrivals) {
    const std::unique_ptr<Generation> generation = Leave(arrival);
    generation->request.stream->OnEnd(status, reason, generation->usage());
  }
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
