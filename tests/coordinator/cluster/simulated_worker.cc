#include "tests/coordinator/cluster/simulated_worker.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/step/codec.h"

namespace tandem::coordinator {
namespace {

constexpr uint64_t kSeed = 0x7461'6e64'656d;  // a fold's start

}  // namespace

SimulatedWorker::SimulatedWorker(int rank, SimulatedModel model, std::vector<uint32_t> num_blocks,
                                 SimulatedScript script)
    : rank_(rank),
      model_(std::move(model)),
      can_hold_(std::move(num_blocks)),
      script_(std::move(script)) {}

absl::Status SimulatedWorker::Configure(const config::WorkerConfig& config,
                                        const config::WorkerAssignment& assignment) {
  config_ = config;
  assignment_ = assignment;
  submitted_.clear();
  pages_.clear();
  limits_ = {};
  return Health();
}

absl::Status SimulatedWorker::StartLoad() { return Health(); }

absl::StatusOr<WorkerReady> SimulatedWorker::FinishLoad(Deadline) {
  if (script_.fail_load) return absl::NotFoundError(absl::StrCat("rank ", rank_, ": no model"));
  if (script_.waits_in_vain) {
    return absl::AbortedError(absl::StrCat("rank ", rank_, ": waited in vain"));
  }
  if (script_.loads_for_ever) return absl::DeadlineExceededError("no answer in time");
  TANDEM_RETURN_IF_ERROR(Health());
  return WorkerReady{.num_blocks = can_hold_, .memory_plan = {}};
}

absl::Status SimulatedWorker::Start(const std::vector<uint32_t>& num_blocks) {
  limits_ = step::StepLimits::Of(config_);
  limits_.vocab_size = model_.vocab_size;
  limits_.num_blocks = num_blocks;
  limits_.windows = model_.window_tokens;
  tables_ = step::BlockTables(limits_);
  for (size_t group = 0; group < num_blocks.size(); ++group) {
    // Unwritten values differ in every slot, rank and group.
    std::vector<uint64_t> page(size_t{num_blocks[group]} * config_.cache.block_size);
    for (size_t slot = 0; slot < page.size(); ++slot) {
      page[slot] = SimulatedMix(SimulatedMix(assignment_.epoch.value, group), slot);
    }
    pages_.push_back(std::move(page));
  }
  return Health();
}

absl::Status SimulatedWorker::FinishStart(Deadline) { return Health(); }

absl::Status SimulatedWorker::Submit(std::span<const uint8_t> frame, Deadline) {
  TANDEM_RETURN_IF_ERROR(Health());
  const SimulatedFault* fault = FaultOf(num_steps_ + submitted_.size() + 1);
  if (fault != nullptr && *fault == SimulatedFault::kRefuse) {
    return absl::UnavailableError("the channel is closed");
  }
  submitted_.emplace_back(frame.begin(), frame.end());
  return absl::OkStatus();
}

absl::StatusOr<step::StepResult> SimulatedWorker::Collect(Deadline deadline) {
  if (script_.on_collect) script_.on_collect();
  if (aborted_) return absl::UnavailableError(absl::StrCat("rank ", rank_, " was aborted"));
  TANDEM_RETURN_IF_ERROR(Health());
  if (submitted_.empty()) return absl::DeadlineExceededError("no step");
  const SimulatedFault* fault = FaultOf(num_steps_ + 1);
  if (fault != nullptr) {
    if (*fault == SimulatedFault::kDie) {
      Kill();
      return LostError();
    }
    const bool hangs = *fault == SimulatedFault::kHang;
    if (hangs) {
      std::unique_lock lock(mutex_);
      deadline.Wait(aborted_changed_, lock, [&] { return aborted_.load(); });
    }
    if (hangs || (*fault == SimulatedFault::kDelay && polls_++ < script_.delay_polls)) {
      return absl::DeadlineExceededError("no answer yet");
    }
  }
  polls_ = 0;
  step::StepResult result = Run(submitted_.front());
  submitted_.pop_front();
  ++num_steps_;
  if (fault != nullptr) Distort(*fault, result);
  return result;
}

SimulatedFault* SimulatedWorker::FaultOf(uint64_t step) {
  auto found = script_.faults.find(step);
  return found == script_.faults.end() ? nullptr : &found->second;
}

void SimulatedWorker::Distort(SimulatedFault fault, step::StepResult& result) const {
  switch (fault) {
    case SimulatedFault::kWrongEpoch:
      ++result.epoch.value;
      break;
    case SimulatedFault::kWrongStepId:
      ++result.step_id.value;
      break;
    case SimulatedFault::kError:
      result.status = absl::InternalError("scripted error");
      result.rows.clear();
      break;
    case SimulatedFault::kBadToken:
      for (step::RowResult& row : result.rows) {
        row.tokens = {static_cast<TokenId>(model_.vocab_size)};
      }
      break;
    case SimulatedFault::kNotFinite:
      if (!result.rows.empty()) result.rows[0].tokens = {step::kNotFinite};
      break;
    case SimulatedFault::kNoRows:
      result.rows.clear();
      break;
    default:
      break;
  }
}

step::StepResult SimulatedWorker::Run(const std::vector<uint8_t>& frame) {
  step::StepResult result{.step_id = {},
                          .epoch = assignment_.epoch,
                          .rank = uint32_t(rank_),
                          .status = {},
                          .rows = {},
                          .timings = {}};
  absl::StatusOr<step::StepDescriptor> step = step::ParseDescriptor(frame);
  result.status = step.status();
  if (!step.ok()) return result;
  result.step_id = step->step_id;
  if (step->epoch != assignment_.epoch) {
    result.status = absl::FailedPreconditionError(absl::StrCat(
        "frame of epoch ", step->epoch.value, ", this is epoch ", assignment_.epoch.value));
    return result;
  }
  result.status = step::Validate(*step, limits_, tables_);
  if (result.status.ok()) {
    tables_.Apply(*step);
    result.status = Compute(*step, result);
  }
  if (!result.status.ok() || rank_ != 0) result.rows.clear();
  return result;
}

absl::Status SimulatedWorker::Compute(const step::StepDescriptor& step, step::StepResult& result) {
  std::vector<uint64_t> states;
  states.reserve(step.tokens.size());
  for (size_t s = 0; s < step.sequences.size(); ++s) {
    for (size_t t = step.query_offsets[s]; t < step.query_offsets[s + 1]; ++t) {
      TANDEM_ASSIGN_OR_RETURN(const uint64_t state, ComputeToken(step, s, t));
      states.push_back(state);
    }
  }
  size_t next_sampling = 0;
  for (const step::RowRequest& row : step.rows) {
    step::RowResult& out = result.rows.emplace_back();
    if (row.wants & step::kWantSample) {
      out.tokens = {model_.Sample(states[row.token], step.sampling[next_sampling++])};
    }
    if (row.wants & step::kWantLogits) out.logits = model_.Logits(states[row.token]);
    if (step::NumLogprobs(row) > 0) {
      const TokenId sampled = out.tokens.empty() ? 0 : out.tokens[0];
      out.logprobs = model_.Logprobs(states[row.token], row, sampled);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> SimulatedWorker::ComputeToken(const step::StepDescriptor& step,
                                                       size_t sequence, size_t token) {
  const uint32_t position = static_cast<uint32_t>(step.positions[token]);
  const uint32_t block_size = limits_.block_size;
  uint64_t state = kSeed;
  for (size_t group = 0; group < pages_.size(); ++group) {
    const std::span<const BlockId> table = tables_.Table(group, step.sequences[sequence].slot);
    uint64_t context = kSeed;
    for (uint32_t p = model_.FirstRead(group, position); p < position; ++p) {
      const BlockId block = table[p / block_size];
      if (block == kNoBlock) {
        return absl::InvalidArgumentError(absl::StrCat("KV group ", group, ": position ", position,
                                                       " reads position ", p,
                                                       ", whose block was released"));
      }
      context = SimulatedMix(context, pages_[group][size_t{block_size} * block + p % block_size]);
    }
    const uint64_t kv = SimulatedKv(context, step.tokens[token], position, group);
    pages_[group][step.groups[group].slot_mapping[token]] = kv;
    state = SimulatedMix(state, kv);
  }
  return state;
}

absl::Status SimulatedWorker::LostError() const {
  return absl::UnavailableError(absl::StrCat("rank ", rank_, " exited with signal 9"));
}

absl::Status SimulatedWorker::Health() const { return dead_ ? LostError() : absl::OkStatus(); }

void SimulatedWorker::Abort(const absl::Status&) {
  if (script_.on_abort) script_.on_abort();
  {
    std::lock_guard lock(mutex_);
    aborted_ = true;
  }
  aborted_changed_.notify_all();
}

std::vector<std::unique_ptr<WorkerClient>> MakeSimulatedWorkers(
    int size, const SimulatedModel& model, const std::vector<uint32_t>& num_blocks,
    const std::vector<SimulatedScript>& scripts) {
  std::vector<std::unique_ptr<WorkerClient>> workers;
  for (int rank = 0; rank < size; ++rank) {
    const bool scripted = static_cast<size_t>(rank) < scripts.size();
    workers.push_back(std::make_unique<SimulatedWorker>(
        rank, model, num_blocks, scripted ? scripts[rank] : SimulatedScript{}));
  }
  return workers;
}

}  // namespace tandem::coordinator
