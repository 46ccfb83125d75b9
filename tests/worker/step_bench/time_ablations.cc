#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/kv/blocks.h"
#include "tests/worker/step_bench/sections.h"
#include "tests/worker/step_bench/step_times.h"

namespace tandem::worker {
namespace {

// What others take as indices must be written.
const std::set<std::string> kKept = {"Route", "ScatterRuns"};

struct Plan {
  std::vector<BenchShape> shapes;
  std::vector<uint32_t> batches;
  uint32_t context = 0;
  uint32_t steps = 0;
};

Plan PlanFor(bool toy) {
  if (toy) {
    return {.shapes = {ToyMixture()}, .batches = {2}, .context = 20, .steps = 1};
  }
  return {.shapes = {Llama3_8B(), Qwen3_30B_A3B()},
          .batches = {1, 16, 64},
          .context = 1024,
          .steps = 20};
}

// Step times of every batch size with `left_out` left out.
absl::StatusOr<std::vector<double>> TimeWithout(BenchDevice& device, const Plan& plan,
                                                const std::string& left_out) {
  device.backend().LeaveOut(left_out);
  const uint32_t most = plan.batches.back();
  const uint32_t length = plan.context + 1 + kWarmUpSteps + plan.steps;
  TANDEM_ASSIGN_OR_RETURN(
      const auto runner,
      BenchRunner::Start(device, {.max_seqs = most,
                                  .max_tokens = most,
                                  .max_model_len = length,
                                  .num_blocks = most * kv::BlocksFor(length, kBenchBlockSize)}));
  std::vector<double> micros;
  for (const uint32_t batch : plan.batches) {
    TANDEM_ASSIGN_OR_RETURN(const StepTimes times,
                            MedianTimes(*runner, DecodeBatch(batch, plan.context + 1), plan.steps));
    micros.push_back(times.step);
  }
  return micros;
}

absl::Status TimeShape(const BenchContext& context, const Plan& plan, const BenchShape& shape) {
  TANDEM_ASSIGN_OR_RETURN(const auto device, BenchDevice::Load(shape));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<double> whole, TimeWithout(*device, plan, ""));
  for (const std::string& op : device->backend().seen()) {
    if (kKept.count(op) != 0) continue;
    TANDEM_ASSIGN_OR_RETURN(const std::vector<double> without, TimeWithout(*device, plan, op));
    for (size_t i = 0; i < whole.size(); ++i) {
      const double cost = whole[i] - without[i];
      std::printf("%-14s x%-4u %-14s %9.0f of %9.0f us, %5.1f%%\n", shape.name.c_str(),
                  plan.batches[i], op.c_str(), cost, whole[i], 100 * cost / whole[i]);
      context.figures.Append("ablation", {{"model", shape.name},
                                          {"batch", plan.batches[i]},
                                          {"op", op},
                                          {"step_us", whole[i]},
                                          {"without_us", without[i]}});
    }
    std::fflush(stdout);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status TimeAblations(const BenchContext& context) {
  const Plan plan = PlanFor(context.toy);
  for (const BenchShape& shape : plan.shapes) {
    TANDEM_RETURN_IF_ERROR(Annotate(TimeShape(context, plan, shape), shape.name));
  }
  return absl::OkStatus();
}

}  // namespace tandem::worker
