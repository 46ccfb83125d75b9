#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/kv/blocks.h"
#include "tests/worker/step_bench/sections.h"
#include "tests/worker/step_bench/step_times.h"

namespace tandem::worker {
namespace {

struct Plan {
  std::vector<BenchShape> shapes;
  std::vector<uint32_t> batches;
  std::vector<uint32_t> prefills;
  uint32_t context = 0;       // of sequences that decode
  uint32_t mixed_batch = 0;   // one long sequence among so many
  uint32_t long_context = 0;  // of that one
  uint32_t steps = 0;

  uint32_t max_seqs() const { return std::max(batches.back(), mixed_batch); }
  // All that a measurement's last step sees.
  uint32_t Len(uint32_t begin) const { return begin + kWarmUpSteps + steps; }
  uint32_t NumBlocks() const {
    const uint32_t each = kv::BlocksFor(Len(context), kBenchBlockSize);
    return std::max(batches.back() * each,
                    mixed_batch * each + kv::BlocksFor(Len(long_context), kBenchBlockSize));
  }
};

Plan PlanFor(bool toy) {
  if (toy) {
    return {.shapes = {ToyDense(), ToyMixture()},
            .batches = {1, 3},
            .prefills = {5},
            .context = 20,
            .mixed_batch = 2,
            .long_context = 70,
            .steps = 1};
  }
  return {.shapes = {Qwen3_0_6B(), Llama3_8B(), Qwen3_30B_A3B()},
          .batches = {1, 4, 8, 9, 16, 32, 64, 128},
          .prefills = {128, 512, 4096},
          .context = 1024,
          .mixed_batch = 64,
          .long_context = 32768,
          .steps = 20};
}

// The least seconds of a step: reading weights and KV, or computing.
double RoofSeconds(const BenchShape& shape, const BenchCost& cost,
                   const kernels::cuda::Ceilings& ceilings,
                   const std::vector<BenchSequence>& sequences) {
  double tokens = 0, positions = 0, pairs = 0;
  for (const BenchSequence& sequence : sequences) {
    tokens += sequence.query_len;
    positions += sequence.context_len;
    pairs += sequence.query_len * (sequence.context_len - (sequence.query_len - 1) / 2.0);
  }
  const double experts_read = 1 - std::pow(1 - cost.expert_share, tokens);
  const double bytes =
      cost.dense_bytes + cost.expert_bytes * experts_read + cost.kv_bytes * positions;
  const double flops =
      tokens * cost.token_flops + 4.0 * pairs * shape.layers * shape.heads * shape.head_dim;
  return std::max(bytes / ceilings.bytes_per_s(), flops / ceilings.flops_per_s);
}

class ShapeTimes {
 public:
  ShapeTimes(const BenchContext& context, const Plan& plan, BenchDevice& device)
      : context_(context), plan_(plan), device_(device) {}

  absl::Status Run() {
    TANDEM_RETURN_IF_ERROR(RunWith(/*graphs=*/true));
    return RunWith(/*graphs=*/false);
  }

 private:
  absl::Status RunWith(bool graphs) {
    const BenchLimits limits{
        .max_seqs = plan_.max_seqs(),
        .max_tokens = std::max(plan_.prefills.back(), plan_.max_seqs()),
        .max_model_len = std::max(plan_.Len(plan_.long_context), plan_.prefills.back()),
        .num_blocks = plan_.NumBlocks(),
        .graphs = graphs};
    const uint64_t free_before = device_.free_bytes();
    TANDEM_ASSIGN_OR_RETURN(const auto runner, BenchRunner::Start(device_, limits));
    PrintStart(graphs, *runner, free_before - device_.free_bytes());
    const char* const mode = graphs ? "graphs" : "eager";
    for (const uint32_t batch : plan_.batches) {
      TANDEM_RETURN_IF_ERROR(Time(*runner, absl::StrCat("decode x", batch), mode,
                                  DecodeBatch(batch, plan_.context + 1)));
    }
    std::vector<BenchSequence> mixed = DecodeBatch(plan_.mixed_batch, plan_.context + 1);
    mixed[0].context_len = plan_.long_context + 1;
    TANDEM_RETURN_IF_ERROR(
        Time(*runner, absl::StrCat("decode x", plan_.mixed_batch, ", one at ", plan_.long_context),
             mode, mixed));
    if (!graphs) return absl::OkStatus();
    for (const uint32_t tokens : plan_.prefills) {
      TANDEM_RETURN_IF_ERROR(Time(*runner, absl::StrCat("prefill ", tokens), "eager",
                                  {{.slot = 0, .context_len = tokens, .query_len = tokens}}));
    }
    return absl::OkStatus();
  }

  void PrintStart(bool graphs, const BenchRunner& runner, uint64_t bytes) const {
    const double mib = static_cast<double>(bytes) / (1 << 20);
    std::printf("%s, %s: started in %.2f s with %.0f MiB\n", device_.shape().name.c_str(),
                graphs ? "graphs" : "eager", runner.start_seconds(), mib);
    context_.figures.Append("starts", {{"model", device_.shape().name},
                                       {"graphs", graphs},
                                       {"seconds", runner.start_seconds()},
                                       {"mib", mib}});
  }

  absl::Status Time(BenchRunner& runner, const std::string& what, const std::string& mode,
                    const std::vector<BenchSequence>& sequences) {
    TANDEM_ASSIGN_OR_RETURN(const StepTimes times, MedianTimes(runner, sequences, plan_.steps));
    const double roof_us =
        1e6 * RoofSeconds(device_.shape(), device_.cost(), context_.ceilings, sequences);
    const double percent = 100 * roof_us / times.step;
    std::printf("%-14s %-24s %-7s %9.0f %9.0f %9.0f %9.0f %9.0f %6.1f%%\n",
                device_.shape().name.c_str(), what.c_str(), mode.c_str(), times.encode,
                times.submit, times.wait, times.step, roof_us, percent);
    std::fflush(stdout);
    context_.figures.Append("steps", {{"model", device_.shape().name},
                                      {"what", what},
                                      {"mode", mode},
                                      {"encode_us", times.encode},
                                      {"submit_us", times.submit},
                                      {"wait_us", times.wait},
                                      {"step_us", times.step},
                                      {"roof_us", roof_us},
                                      {"percent_of_roof", percent}});
    return absl::OkStatus();
  }

  const BenchContext& context_;
  const Plan& plan_;
  BenchDevice& device_;
};

}  // namespace

absl::Status TimeSteps(const BenchContext& context) {
  const Plan plan = PlanFor(context.toy);
  std::printf("%-14s %-24s %-7s %9s %9s %9s %9s %9s %7s\n", "model", "step", "mode", "encode us",
              "submit us", "wait us", "step us", "roof us", "of it");
  absl::Status failed;
  for (const BenchShape& shape : plan.shapes) {
    if (!context.only.empty() && shape.name != context.only) continue;
    const int64_t begin = NowMicros();
    auto device = BenchDevice::Load(shape);
    absl::Status status = device.status();
    if (status.ok()) {
      std::printf("%s: loaded in %.1f s\n", shape.name.c_str(),
                  static_cast<double>(NowMicros() - begin) * 1e-6);
      status = ShapeTimes(context, plan, **device).Run();
    }
    if (status.ok()) continue;
    failed = Annotate(status, shape.name);
    std::printf("%s\n", std::string(failed.message()).c_str());
  }
  return failed;
}

}  // namespace tandem::worker
