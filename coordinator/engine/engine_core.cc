#include "coordinator/engine/engine_core.h"

#include <chrono>
#include <span>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "coordinator/engine/apply.h"
#include "coordinator/speculation/ngram_drafter.h"
#include "coordinator/speculation/scripted_drafter.h"

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
  TimePoint last() const { return last_; }

 private:
  TimePoint last_ = std::chrono::steady_clock::now();
};

int64_t Micros(Duration time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time).count();
}

// Rank 0's time for a step itself: with several in flight the engine's wait says less.
Duration ComputeTime(const step::StepTimings& timings) {
  return std::chrono::microseconds(uint64_t{timings.receive_us} + timings.encode_us +
                                   timings.submit_us + timings.wait_us);
}

// A scored prompt token takes a row of the step's result, which is bounded, and a pooled state its
// values.
SchedulerConfig WithinAResult(const EngineConfig& config) {
  SchedulerConfig scheduler = config.scheduler;
  scheduler.max_scored_tokens = config.MaxScoredTokens();
  scheduler.max_pools = config.MaxPools();
  return scheduler;
}

std::unique_ptr<Drafter> MakeDrafter(const EngineConfig& config, const Request& request) {
  if (request.draft_script.has_value()) {
    return std::make_unique<ScriptedDrafter>(*request.draft_script);
  }
  if (config.workers_guess) return std::make_unique<ModelDrafter>();
  return std::make_unique<NgramDrafter>();
}

// Where each entry's rows begin, and the last one's end.
std::vector<size_t> RowEnds(const step::StepDescriptor& step) {
  std::vector<size_t> ends{0};
  for (size_t entry = 1; entry < step.query_offsets.size(); ++entry) {
    size_t end = ends.back();
    while (end < step.rows.size() && step.rows[end].token < step.query_offsets[entry]) ++end;
    ends.push_back(end);
  }
  TANDEM_CHECK(ends.back() == step.rows.size());
  return ends;
}

}  // namespace

EngineCore::EngineCore(EngineConfig config, WorkerGroup workers, const Clock& clock)
    : config_(std::move(config)),
      clock_(clock),
      pipeline_(std::move(workers), config_.pipeline_depth, config_.vocab_size, config_.hidden_size,
                config_.step_timeout, clock),
      kv_(config_.kv_cache),
      scheduler_(WithinAResult(config_), kv_),
      builder_(config_.kv_cache.block_size, static_cast<uint32_t>(config_.kv_cache.groups.size()),
               config_.workers_guess),
      epoch_(config_.epoch) {
  TANDEM_CHECK_OK(config_.Validate());
}

void EngineCore::Add(Request request, RequestHandle handle) {
  auto generation = std::make_shared<Generation>(handle, std::move(request));
  if (config_.max_draft_tokens > 0 && generation->request.sampling.speculation &&
      generation->generates && !generation->needs_known_tokens) {
    generation->speculator.emplace(MakeDrafter(config_, generation->request),
                                   config_.max_draft_tokens, generation->prompt_len,
                                   &draft_record_);
  }
  if (generation->request.deadline != TimePoint::max()) {
    deadlines_.emplace(generation->request.deadline, handle);
  }
  generation->virtual_arrival_us =
      Micros(clock_.Now().time_since_epoch() + generation->priority * config_.priority_ageing);
  scheduler_.Enqueue(*generation);
  tracer_.Arrived(*generation);
  const bool is_new = generations_.emplace(handle, std::move(generation)).second;
  TANDEM_CHECK(is_new) << "handle " << handle << " twice";
}

absl::Status EngineCore::Step() {
  tracer_.Follow(generations_);
  EndExpired();
  TANDEM_RETURN_IF_ERROR(FillPipeline());
  if (pipeline_.empty()) return absl::OkStatus();
  Stopwatch watch;
  StepSettled settled{.begin = watch.last()};
  TANDEM_ASSIGN_OR_RETURN(Pipeline::Answer answer, pipeline_.Collect());
  watch.Lap(timings_.wait_ns);
  settled.step = answer.step.descriptor.step_id;
  settled.answered = watch.last();
  // Before a step without generated tokens there may have been nothing to do.
  if (std::ranges::any_of(answer.step.plan.entries, [](const PlanEntry& entry) {
        return entry.begin >= entry.sequence->prompt_len;
      })) {
    timings_.idle_ns += int64_t{1000} * answer.result.timings.idle_us;
  }
  last_step_time_ = ComputeTime(answer.result.timings);
  scheduler_.NoteStepTime(answer.step.plan, last_step_time_);
  Apply(answer.step, answer.result);
  spare_.push_back(std::move(answer.step.descriptor));
  watch.Lap(timings_.apply_ns);
  settled.applied = watch.last();
  Deliver();
  watch.Lap(timings_.deliver_ns);
  settled.delivered = watch.last();
  tracer_.Settled(settled);
  ++timings_.steps;
  return absl::OkStatus();
}

void EngineCore::NoteScheduled(const Plan& plan, TimePoint now) {
  for (const PlanEntry& entry : plan.entries) {
    TimePoint& first = GenerationOf(*entry.sequence).scheduled_at;
    if (first == TimePoint{}) first = now;
  }
}

absl::Status EngineCore::FillPipeline() {
  const bool overlaps = last_step_time_ < config_.overlap_below;
  while (overlaps ? !pipeline_.full() : pipeline_.empty()) {
    Stopwatch watch;
    StepSubmitted submitted{.begin = watch.last()};
    coordinator::Step step{.plan = scheduler_.Schedule(), .descriptor = {}};
    watch.Lap(timings_.schedule_ns);
    submitted.scheduled = watch.last();
    if (step.plan.entries.empty()) return absl::OkStatus();
    if (config_.num_adapters > 0) GroupByAdapter(step.plan);
    NoteScheduled(step.plan, watch.last());
    if (!spare_.empty()) {
      step.descriptor = std::move(spare_.back());
      spare_.pop_back();
    }
    step.descriptor.step_id = StepId{++last_step_};
    step.descriptor.epoch = epoch_;
    builder_.Build(step.plan, step.descriptor);
    num_unguessed_ += step.descriptor.skips_guesser ? 1 : 0;
    scheduler_.Advance(step.plan);
    watch.Lap(timings_.build_ns);
    submitted.built = watch.last();
    tracer_.Describe(step, submitted);
    TANDEM_RETURN_IF_ERROR(pipeline_.Submit(std::move(step)));
    watch.Lap(timings_.submit_ns);
    submitted.submitted = watch.last();
    tracer_.Submitted(submitted);
  }
  return absl::OkStatus();
}

void EngineCore::AbortWorkers(const absl::Status& reason) {
  pipeline_.Drain(reason);
  leaving_.clear();
}

void EngineCore::Rewind(const absl::Status& reason) {
  tracer_.Follow(generations_);  // an idle engine makes no steps
  tracer_.Lost(epoch_, reason);
  const bool blame = !pipeline_.EndedFromOutside();
  AbortWorkers(reason);
  if (Sequence* const culprit = scheduler_.Rewind(blame); culprit != nullptr) {
    EndCulprit(GenerationOf(*culprit), reason);
  }
}

void EngineCore::Resume(ReadyWorkers workers, Duration pause) {
  TANDEM_CHECK(epoch_ < workers.epoch)
      << "epoch " << workers.epoch.value << " after " << epoch_.value;
  epoch_ = workers.epoch;
  ++restarts_;
  last_pause_ = pause;
  tracer_.Follow(generations_);
  tracer_.Resumed(epoch_);
  pipeline_.Resume(std::move(*workers.group));
}

void EngineCore::Apply(coordinator::Step& step, const step::StepResult& result) {
  const std::vector<size_t> ends = RowEnds(step.descriptor);
  const std::span<const step::RowRequest> all_rows = step.descriptor.rows;
  const std::span<const step::RowResult> all_results = result.rows;
  TakeGuesses(step, result.guesses);
  // Of a plan's entry. Rows after the first draft that is not accepted are of tokens that don't
  // exist.
  const auto num_rows = [&](size_t e) {
    const PlanEntry& entry = step.plan.entries[e];
    return entry.num_drafts > 0 ? entry.num_accepted + 1 : ends[e + 1] - ends[e];
  };
  for (size_t e = 0; e < step.plan.entries.size(); ++e) {
    PlanEntry& entry = step.plan.entries[e];
    if (entry.num_drafts == 0) continue;
    entry.num_accepted =
        NumAccepted(step.descriptor, all_rows.subspan(ends[e], ends[e + 1] - ends[e]),
                    all_results.subspan(ends[e]), GenerationOf(*entry.sequence));
  }
  scheduler_.Settle(step.plan);
  size_t next_pool = 0;
  for (size_t e = 0; e < step.plan.entries.size(); ++e) {
    const PlanEntry& entry = step.plan.entries[e];
    Generation& generation = GenerationOf(*entry.sequence);
    const bool ended = generation.state == SequenceState::kFinished;
    if (ended && (entry.refers || entry.num_drafts > 0)) num_surplus_ += entry.num_sampled();
    const uint32_t end = step.descriptor.query_offsets[e + 1];
    const bool pools =
        next_pool < step.descriptor.pools.size() && step.descriptor.pools[next_pool].begin < end;
    const size_t pool = next_pool;
    next_pool += pools ? 1 : 0;
    if (!ended && generation.request.pooling.has_value()) {
      ApplyPoolTo(generation, step, pools ? std::optional(pool) : std::nullopt, result);
    }
    if (ended || num_rows(e) == 0) continue;
    ApplyTo(generation, step, ends[e], all_rows.subspan(ends[e], num_rows(e)),
            all_results.subspan(ends[e], num_rows(e)));
  }
  std::erase_if(leaving_, [](const auto& generation) { return generation->num_in_flight == 0; });
}

void EngineCore::ApplyTo(Generation& generation, const coordinator::Step& step, size_t first_row,
                         std::span<const step::RowRequest> rows,
                         std::span<const step::RowResult> results) {
  StreamUpdate update = ApplyRows(rows, results, config_.scheduler.max_model_len, generation);
  if (absl::IsDataLoss(update.status)) {
    NoteNotFinite(generation,
                  absl::StrCat("rank 0, step ", step.descriptor.step_id.value, ", row ",
                               first_row + update.tokens.size()),
                  update.status);
  } else if (absl::IsInternal(update.status)) {
    TANDEM_LOG_REQUEST(kError, (LogRequest{.id = generation.request.id}))
        << update.status.message();
  }
  if (!update.last()) generation.Speculate(step.plan.may_draft);
  Send(generation, std::move(update));
}

void EngineCore::ApplyPoolTo(Generation& generation, const coordinator::Step& step,
                             std::optional<size_t> pool, const step::StepResult& result) {
  if (pool.has_value()) {
    const step::PoolRequest& wanted = step.descriptor.pools[*pool];
    generation.AddPooled(
        wanted.end - wanted.begin,
        std::span(result.pooled).subspan(*pool * config_.hidden_size, config_.hidden_size));
  }
  StreamUpdate update = PooledUpdate(generation);
  if (!update.last()) return;
  if (!update.status.ok()) {
    NoteNotFinite(generation, absl::StrCat("rank 0, step ", step.descriptor.step_id.value),
                  update.status);
  }
  Send(generation, std::move(update));
}

EngineStats EngineCore::Stats() const {
  return {
      kv_.Stats(),     scheduler_.Stats(),
      timings_.steps,  static_cast<int64_t>(epoch_.value),
      num_not_finite_, num_surplus_,
      restarts_,       std::chrono::duration_cast<std::chrono::milliseconds>(last_pause_).count(),
      num_expired_,    num_unguessed_};
}

void EngineCore::NoteNotFinite(const Generation& generation, const std::string& at,
                               absl::Status& status) {
  ++num_not_finite_;
  const std::string reason = explain_ ? explain_() : "";
  status = absl::InternalError(
      absl::StrCat(at, ": ", status.message(), reason.empty() ? "" : "; ", reason));
  TANDEM_LOG_REQUEST(kError, (LogRequest{.id = generation.request.id})) << status.message();
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
