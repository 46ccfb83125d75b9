#include "worker/runtime/runner_plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/model/human_bytes.h"

namespace tandem::worker {
namespace {

using model::HumanBytes;

// Of the device's memory, for unplanned use: as much as the default utilization leaves.
constexpr double kMostMargin = 0.1;

uint64_t PartOf(uint64_t bytes, double part) {
  return static_cast<uint64_t>(part * static_cast<double>(bytes));
}

std::string BudgetText(const DeviceBudget& device) {
  std::string text =
      absl::StrCat(HumanBytes(device.limit_bytes()), " of the device's ",
                   HumanBytes(device.total_bytes), " (utilization ", device.utilization);
  if (device.limit_bytes() < PartOf(device.total_bytes, device.utilization)) {
    absl::StrAppend(&text, ", ", HumanBytes(device.free_bytes), " were free");
  }
  return text + ")";
}

// "160 MiB (8 sequences)".
std::string StatesText(const RunnerPlan& plan) {
  return absl::StrCat(HumanBytes(plan.state_bytes), " (", plan.state_slots,
                      plan.state_slots == 1 ? " sequence)" : " sequences)");
}

// "weights 1 GiB + activations ... + KV cache 2 GiB (64 blocks) = 3.1 GiB".
std::string SumText(const RunnerPlan& plan) {
  const uint64_t blocks = std::max<uint64_t>(plan.num_kv_blocks, 1);
  const uint64_t kv_bytes = plan.kv.Bytes(blocks);
  return absl::StrCat(
      "weights ", HumanBytes(plan.weights_bytes), " + activations ",
      HumanBytes(plan.activation_bytes), " + workspace ", HumanBytes(plan.workspace_bytes),
      " + step buffers ", HumanBytes(plan.buffers_bytes), " + block tables ",
      HumanBytes(plan.table_bytes), " + decode graphs ", HumanBytes(plan.graph_bytes),
      plan.state_bytes == 0 ? "" : absl::StrCat(" + recurrent states ", StatesText(plan)),
      " + KV cache ", HumanBytes(kv_bytes), " (", plan.kv.CountText(blocks),
      ") = ", HumanBytes(plan.fixed_bytes() + kv_bytes));
}

absl::Status DoesNotFit(const RunnerOptions& options, const RunnerPlan& plan) {
  const bool asked = options.config.cache.num_kv_blocks != 0 || options.kv_cache_bytes != 0;
  return absl::ResourceExhaustedError(absl::StrCat(
      "does not fit: ", SumText(plan), ", at most ", BudgetText(*plan.device), ": ",
      asked ? "lower --num-kv-blocks or --kv-cache-memory, " : "",
      "raise --tensor-parallel-size or --gpu-memory-utilization, lower --max-num-batched-tokens or "
      "--max-num-seqs, or take a smaller quantisation"));
}

}  // namespace

uint64_t DeviceBudget::limit_bytes() const {
  const uint64_t margin = PartOf(total_bytes, std::min(1 - utilization, kMostMargin));
  return std::min(PartOf(total_bytes, utilization), free_bytes - std::min(free_bytes, margin));
}

std::vector<std::string> RunnerPlan::Lines() const {
  std::vector<std::string> lines = {absl::StrCat("weights      ", HumanBytes(weights_bytes)),
                                    absl::StrCat("activations  ", HumanBytes(activation_bytes)),
                                    absl::StrCat("workspace    ", HumanBytes(workspace_bytes)),
                                    absl::StrCat("step buffers ", HumanBytes(buffers_bytes)),
                                    absl::StrCat("block tables ", HumanBytes(table_bytes))};
  if (graph_bytes > 0) lines.push_back(absl::StrCat("graphs       ", HumanBytes(graph_bytes)));
  if (state_bytes > 0) lines.push_back(absl::StrCat("states       ", StatesText(*this)));
  lines.push_back(
      absl::StrCat("KV cache     ", HumanBytes(kv_bytes()), " (", kv.Text(num_kv_blocks), ")"));
  lines.push_back(absl::StrCat("total        ", HumanBytes(total_bytes())));
  if (device.has_value()) absl::StrAppend(&lines.back(), ", at most ", BudgetText(*device));
  return lines;
}

absl::Status SizeKvCache(const RunnerOptions& options, RunnerPlan& plan) {
  uint64_t bytes = options.kv_cache_bytes;
  const uint64_t limit = plan.device.has_value() ? plan.device->limit_bytes() : 0;
  const bool by_budget =
      plan.device.has_value() && bytes == 0 && options.config.cache.num_kv_blocks == 0;
  if (by_budget && limit > plan.fixed_bytes()) bytes = limit - plan.fixed_bytes();
  plan.num_kv_blocks = options.config.cache.num_kv_blocks != 0
                           ? options.config.cache.num_kv_blocks
                           : kv::MostBlocks({&plan.kv, 1}, bytes);
  if (plan.num_kv_blocks == 0 && !by_budget) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no KV block fits: one of ", plan.kv.block_size, " tokens needs ",
                     plan.kv.Bytes(1), " bytes, the KV cache was given ", options.kv_cache_bytes));
  }
  const bool exceeds = plan.device.has_value() && plan.total_bytes() > limit;
  return plan.num_kv_blocks == 0 || exceeds ? DoesNotFit(options, plan) : absl::OkStatus();
}

absl::Status CheckHostMemory(const RunnerOptions& options, const RunnerPlan& plan, int ranks,
                             uint64_t available_bytes) {
  const bool copies = options.config.device.copies_weights();
  RunnerPlan in_memory = plan;
  if (!copies) in_memory.weights_bytes = 0;
  if (in_memory.total_bytes() <= available_bytes / static_cast<uint64_t>(ranks)) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "does not fit: ", SumText(in_memory),
      ranks == 1 ? "" : absl::StrCat(" for each of ", ranks, " ranks"), ", only ",
      HumanBytes(available_bytes),
      " of this host's memory are free: lower --num-kv-blocks or --kv-cache-memory, raise "
      "--tensor-parallel-size",
      copies ? ", compute on the mapped file with --no-repack-weights" : "",
      ", or take a smaller quantisation"));
}

}  // namespace tandem::worker
