#include "tests/cluster/worker_driver.h"

#include <algorithm>
#include <utility>

#include "common/base/status.h"
#include "common/kv/blocks.h"
#include "coordinator/startup/model_file.h"

namespace tandem::testing {
namespace {

constexpr auto kStepTimeout = std::chrono::seconds(60);

}  // namespace

config::ServerConfig TestServerConfig(const std::string& model_path) {
  config::ServerConfig options;
  options.worker.model.path = model_path;
  options.worker.device.threads = 1;
  options.worker.limits.max_num_seqs = 16;  // rows of a step: the stored positions of a case
  options.worker.limits.max_num_batched_tokens = 256;
  options.worker.model.spec.max_model_len = 256;
  options.worker.cache.num_kv_blocks = 64;
  options.worker.cache.block_size = 16;
  options.worker.cache.kv_cache_type = tensor::Type::kF32;
  options.cluster.worker_binary = "worker/tandem_worker";
  options.scheduling.speculation = config::Speculation::kOff;  // tests of it turn it on
  return options;
}

absl::StatusOr<std::unique_ptr<WorkerDriver>> WorkerDriver::Start(
    const config::ServerConfig& options) {
  TANDEM_ASSIGN_OR_RETURN(const auto model, coordinator::OpenModelFile(options.worker.model));
  TANDEM_ASSIGN_OR_RETURN(auto workers, coordinator::BringUp(options, model, [] { return false; }));
  return std::unique_ptr<WorkerDriver>(
      new WorkerDriver(std::move(workers), options.worker.cache.block_size));
}

absl::Status WorkerDriver::BringAgain() {
  workers_.group = nullptr;
  TANDEM_ASSIGN_OR_RETURN(coordinator::ReadyWorkers ready,
                          workers_.supervisor->Bring([] { return false; }));
  workers_.group = std::move(ready.group);
  workers_.engine.epoch = ready.epoch;
  last_step_ = 0;
  Reset();
  return absl::OkStatus();
}

void WorkerDriver::Reset() { context_len_ = 0; }

// Blocks from the last one of the group down, over and over where a window needs only some of them.
step::GroupDeltas WorkerDriver::TablesOf(const coordinator::KvGroup& group, uint32_t begin) const {
  step::GroupDeltas group_deltas;
  const auto length = [&](uint32_t tokens) { return kv::BlocksFor(tokens, block_size_); };
  const auto block_of = [&](uint32_t index) {
    const uint32_t from_last = group.window_tokens == 0 ? index : index % group.num_blocks;
    return static_cast<BlockId>(group.num_blocks - 1 - from_last);
  };
  const step::TableDelta delta{.length_before = length(begin),
                               .length_after = length(context_len_),
                               .first_live = workers_.engine.kv_cache.FirstLiveBlock(group, begin)};
  group_deltas.tables = {delta};
  for (uint32_t i = delta.first_appended(); i < delta.length_after; ++i) {
    group_deltas.blocks.push_back(block_of(i));
  }
  for (uint32_t position = begin; position < context_len_; ++position) {
    group_deltas.slot_mapping.push_back(block_of(position / block_size_) *
                                            static_cast<int32_t>(block_size_) +
                                        static_cast<int32_t>(position % block_size_));
  }
  return group_deltas;
}

absl::StatusOr<step::StepResult> WorkerDriver::Step(const std::vector<TokenId>& tokens,
                                                    std::vector<step::RowRequest> rows) {
  const auto count = static_cast<uint32_t>(tokens.size());
  const uint32_t begin = context_len_;
  context_len_ += count;
  step::StepDescriptor step;
  step.step_id = StepId{++last_step_};
  step.epoch = workers_.engine.epoch;
  step.kind = begin == 0 || count > 1 ? step::StepKind::kPrefill : step::StepKind::kDecode;
  step.num_scheduled_tokens = count;
  step.num_seqs_active = 1;
  step.tokens = tokens;
  step.query_offsets = {0, count};
  step.sequences = {
      {.slot = 0, .query_len = count, .context_len = context_len_, .adapter = adapter}};
  for (uint32_t position = begin; position < context_len_; ++position) {
    step.positions.push_back(static_cast<int32_t>(position));
  }
  for (const coordinator::KvGroup& group : workers_.engine.kv_cache.groups) {
    step.groups.push_back(TablesOf(group, begin));
  }
  step.rows = std::move(rows);
  for (const auto& row : step.rows) {
    if ((row.wants & step::kWantSample) == 0) continue;
    step.sampling.push_back({.temperature = 0.0f, .position = context_len_, .adjustments = {}});
  }
  const auto deadline = Deadline::After(kStepTimeout);
  TANDEM_RETURN_IF_ERROR(workers_.group->Submit(step, deadline));
  return workers_.group->Collect(deadline);
}

absl::StatusOr<std::vector<std::vector<float>>> WorkerDriver::Prefill(
    const std::vector<TokenId>& tokens, const std::vector<int>& wanted, uint32_t chunk) {
  std::vector<std::vector<float>> logits;
  for (size_t begin = 0; begin < tokens.size(); begin += chunk) {
    const size_t end = std::min(begin + chunk, tokens.size());
    std::vector<step::RowRequest> rows;
    for (int position : wanted) {
      const auto at = static_cast<size_t>(position);
      if (at < begin || at >= end) continue;
      rows.push_back({.token = static_cast<uint32_t>(at - begin),
                      .wants = step::kWantLogits,
                      .top_n = 0,
                      .logprobs_of = {}});
    }
    TANDEM_ASSIGN_OR_RETURN(step::StepResult result,
                            Step({tokens.begin() + static_cast<std::ptrdiff_t>(begin),
                                  tokens.begin() + static_cast<std::ptrdiff_t>(end)},
                                 std::move(rows)));
    for (auto& row : result.rows) logits.push_back(std::move(row.logits));
  }
  return logits;
}

absl::StatusOr<TokenId> WorkerDriver::Decode(TokenId token) {
  TANDEM_ASSIGN_OR_RETURN(
      const step::StepResult result,
      Step({token}, {{.token = 0, .wants = step::kWantSample, .top_n = 0, .logprobs_of = {}}}));
  if (result.rows.size() != 1 || result.rows[0].tokens.size() != 1) {
    return absl::InternalError("the step gave no token");
  }
  return result.rows[0].tokens[0];
}

absl::StatusOr<std::vector<TokenId>> GreedyTokens(WorkerDriver& driver,
                                                  const std::vector<TokenId>& prompt,
                                                  size_t count) {
  driver.Reset();
  std::vector<TokenId> before_last(prompt.begin(), prompt.end() - 1);
  if (!before_last.empty()) {
    TANDEM_RETURN_IF_ERROR(
        driver.Prefill(before_last, {}, static_cast<uint32_t>(before_last.size())).status());
  }
  std::vector<TokenId> tokens;
  TokenId next = prompt.back();
  while (tokens.size() < count) {
    TANDEM_ASSIGN_OR_RETURN(next, driver.Decode(next));
    tokens.push_back(next);
  }
  return tokens;
}

}  // namespace tandem::testing
