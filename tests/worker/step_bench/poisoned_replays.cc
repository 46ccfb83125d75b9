#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/kv/blocks.h"
#include "tests/worker/step_bench/bench_runner.h"
#include "tests/worker/step_bench/sections.h"

namespace tandem::worker {
namespace {

constexpr float kTemperature = 0.8f;

struct Plan {
  std::vector<BenchShape> shapes;
  uint32_t max_seqs = 0;
  uint32_t max_model_len = 0;
  uint32_t max_prompt = 0;
  uint32_t replays = 0;  // of a shape, half of them padded
};

BenchShape FewLayers(BenchShape shape) {
  shape.layers = 4;
  return shape;
}

Plan PlanFor(bool toy) {
  if (toy) {
    return {.shapes = {ToyDense(), ToyMixture()},
            .max_seqs = 4,
            .max_model_len = 48,
            .max_prompt = 6,
            .replays = 4};
  }
  return {.shapes = {FewLayers(Qwen3_0_6B()), FewLayers(Llama3_8B()), FewLayers(Qwen3_30B_A3B())},
          .max_seqs = 32,
          .max_model_len = 512,
          .max_prompt = 60,
          .replays = 500};
}

// Runs the same random steps on two runners; the second is poisoned.
class Pair {
 public:
  // `padded`: batches of any size, else only those that have a graph.
  Pair(const Plan& plan, BenchRunner& calm, BenchRunner& poisoned, bool padded)
      : plan_(plan), calm_(calm), poisoned_(poisoned), padded_(padded), lengths_(plan.max_seqs) {
    poisoned.Poison();
    // The first sequence stays at the longest context, so that eager steps split their attention
    // as graphs do, which are made for that context.
    lengths_[0] = plan.max_model_len - 1;
  }

  absl::Status Run(uint32_t replays) {
    for (uint32_t i = 0; i < replays; ++i) {
      TANDEM_ASSIGN_OR_RETURN(const auto batch, Batch());
      absl::Status same = RunBoth(batch);
      if (!same.ok()) return Annotate(same, absl::StrCat("replay ", i, " of ", batch.size()));
    }
    TANDEM_ASSIGN_OR_RETURN(const auto expected, calm_.Pages());
    TANDEM_ASSIGN_OR_RETURN(const auto found, poisoned_.Pages());
    if (expected == found) return absl::OkStatus();
    return absl::InternalError("KV pages differ after equal tokens");
  }

 private:
  uint32_t Upto(uint32_t most) { return 1 + static_cast<uint32_t>(random_() % most); }

  uint32_t Size() {
    if (padded_) return Upto(plan_.max_seqs);
    const std::vector<uint32_t> sizes = GraphBatchSizes(plan_.max_seqs);
    return sizes[random_() % sizes.size()];
  }

  // Sequences that decode; new ones are prefilled before.
  absl::StatusOr<std::vector<BenchSequence>> Batch() {
    std::vector<uint32_t> slots;
    for (uint32_t slot = 1; slot < plan_.max_seqs; ++slot) slots.push_back(slot);
    std::shuffle(slots.begin(), slots.end(), random_);
    slots.insert(slots.begin(), 0);
    slots.resize(Size());
    std::vector<BenchSequence> batch;
    for (const uint32_t slot : slots) {
      uint32_t& length = lengths_[slot];
      const bool ends = length + 1 == plan_.max_model_len || random_() % 40 == 0;
      if (slot != 0 && (length == 0 || ends)) {
        calm_.steps().Forget(slot);
        length = Upto(plan_.max_prompt);
        TANDEM_RETURN_IF_ERROR(
            RunBoth({{.slot = slot, .context_len = length, .query_len = length}}));
      }
      batch.push_back({.slot = slot, .context_len = length + 1});
      if (slot != 0) ++length;
    }
    return batch;
  }

  absl::Status RunBoth(const std::vector<BenchSequence>& sequences) {
    const step::StepDescriptor step = calm_.steps().Make(sequences, kTemperature);
    TANDEM_ASSIGN_OR_RETURN(const step::StepResult expected, calm_.Run(step));
    TANDEM_ASSIGN_OR_RETURN(const step::StepResult found, poisoned_.Run(step));
    for (size_t row = 0; row < expected.rows.size(); ++row) {
      const TokenId a = expected.rows[row].tokens[0], b = found.rows[row].tokens[0];
      if (a != b) return absl::InternalError(absl::StrCat("row ", row, ": ", b, ", needed ", a));
    }
    return absl::OkStatus();
  }

  const Plan& plan_;
  BenchRunner& calm_;
  BenchRunner& poisoned_;
  const bool padded_;
  std::vector<uint32_t> lengths_;  // by slot
  std::mt19937_64 random_{23};
};

absl::Status CheckShape(const Plan& plan, const BenchShape& shape) {
  for (const bool padded : {false, true}) {
    // A device each, with the same weights: one stays poisoned.
    TANDEM_ASSIGN_OR_RETURN(const auto calm_device, BenchDevice::Load(shape));
    TANDEM_ASSIGN_OR_RETURN(const auto poisoned_device, BenchDevice::Load(shape));
    BenchLimits limits{
        .max_seqs = plan.max_seqs,
        .max_tokens = std::max(plan.max_prompt, plan.max_seqs),
        .max_model_len = plan.max_model_len,
        .num_blocks = plan.max_seqs * kv::BlocksFor(plan.max_model_len, kBenchBlockSize)};
    TANDEM_ASSIGN_OR_RETURN(const auto poisoned, BenchRunner::Start(*poisoned_device, limits));
    limits.graphs = padded;
    TANDEM_ASSIGN_OR_RETURN(const auto calm, BenchRunner::Start(*calm_device, limits));
    TANDEM_RETURN_IF_ERROR(Annotate(Pair(plan, *calm, *poisoned, padded).Run(plan.replays / 2),
                                    padded ? "padded batches, poisoned graphs against graphs"
                                           : "poisoned graphs against eager steps"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckPoisonedReplays(const BenchContext& context) {
  const Plan plan = PlanFor(context.toy);
  absl::Status failed;
  for (const BenchShape& shape : plan.shapes) {
    const absl::Status status = CheckShape(plan, shape);
    const std::string verdict = status.ok() ? "equal" : std::string(status.message());
    std::printf("%s: %u poisoned replays: %s\n", shape.name.c_str(), plan.replays, verdict.c_str());
    std::fflush(stdout);
    context.figures.Append(
        "replays", {{"model", shape.name}, {"replays", plan.replays}, {"verdict", verdict}});
    if (!status.ok()) failed = Annotate(status, shape.name);
  }
  return failed;
}

}  // namespace tandem::worker
