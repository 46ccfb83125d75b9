#include "client/bench/profile.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "client/bench/bench_options.h"
#include "client/bench/median.h"
#include "common/base/status.h"
#include "common/base/strings.h"

namespace tandem::client {
namespace {

using coordinator::MeasuredTimes;
using coordinator::PromptPositions;
using coordinator::StepMeasurements;

constexpr uint32_t kSeveralPrompts = 4;

// For a file that people read.
double Tenths(double value) { return std::round(value * 10) / 10; }
double Micros(Duration time) { return std::chrono::duration<double, std::micro>(time).count(); }

// 1, 2, 4, ..., `most`; none so near to the last that the line through both would say nothing.
std::vector<uint32_t> Doubling(uint32_t most) {
  std::vector<uint32_t> sizes;
  for (uint64_t size = 1; 3 * size <= 2 * uint64_t{most}; size *= 2) {
    sizes.push_back(static_cast<uint32_t>(size));
  }
  sizes.push_back(most);
  return sizes;
}

// Whether the KV cache holds so many sequences of so many computed tokens.
bool Fits(const coordinator::EngineConfig& engine, uint32_t sequences, uint32_t tokens) {
  const coordinator::KvCacheConfig& cache = engine.kv_cache;
  const uint32_t step_tokens = engine.scheduler.MostStepTokens();
  return std::ranges::all_of(cache.groups, [&](const coordinator::KvGroup& group) {
    return uint64_t{sequences} * cache.MostBlocks(group, tokens, step_tokens) <= group.num_blocks;
  });
}

// The medians of rounds through all sizes, so that what slows the machine for a while is in one
// round of several sizes and not in all of one. `run` gives the speed of steps of a size.
template <typename Run>
absl::StatusOr<MeasuredTimes> InRounds(std::string_view what, const std::vector<uint32_t>& sizes,
                                       const ProfileOptions& options, const ProgressFn& progress,
                                       Run run) {
  std::vector<std::vector<double>> us(sizes.size());
  for (uint32_t round = 0; round < options.repetitions; ++round) {
    for (size_t i = 0; i < sizes.size(); ++i) {
      progress(absl::StrCat(Sv(what), " of ", sizes[i]));
      TANDEM_ASSIGN_OR_RETURN(const Measurement measured, run(sizes[i]));
      us[i].push_back(1e6 * sizes[i] / measured.tokens_per_second);
    }
  }
  MeasuredTimes times;
  for (size_t i = 0; i < sizes.size(); ++i) times.Add(sizes[i], Tenths(Median(std::move(us[i]))));
  return times;
}

// What a position costs that was seen beyond those of the other measurement.
double NanosPerPosition(double more_us, double more_positions) {
  return more_positions <= 0 ? 0 : Tenths(std::max(0.0, 1000 * more_us / more_positions));
}

// A long prompt of several whole steps: later ones see what earlier ones have computed.
double NanosOfLaterSteps(const MeasuredTimes& prefill, uint32_t tokens, Duration time) {
  const uint32_t chunk = prefill.sizes.back();
  const double chunks = tokens / chunk;
  const double more = PromptPositions(tokens) - chunks * PromptPositions(chunk);
  return NanosPerPosition(Micros(time) - chunks * prefill.us.back(), more);
}

// Several prompts in one step see less than a single one of as many tokens, but draw more tokens.
absl::StatusOr<double> NanosOfOnePrompt(Measure& measure, const StepMeasurements& steps,
                                        const ProfileSizes& sizes, uint32_t repetitions) {
  const uint32_t prompts = sizes.several_prompts;
  const uint32_t tokens = sizes.prefill.back() / prompts;
  if (prompts < 2 || tokens == 0) return 0.0;
  const uint32_t all = prompts * tokens;
  TANDEM_ASSIGN_OR_RETURN(const Measurement one, measure.Prefill(all, repetitions));
  TANDEM_ASSIGN_OR_RETURN(const Duration several,
                          measure.SeveralPrompts(prompts, tokens, repetitions));
  const coordinator::StepCosts costs(steps);
  coordinator::StepLoad load;
  load.AddPrefill(0, all);
  const double heads = Micros(costs.Of(load, prompts) - costs.Of(load, 1));
  const double more_us = 1e6 * all / one.tokens_per_second - (Micros(several) - heads);
  return NanosPerPosition(more_us, PromptPositions(all) - prompts * PromptPositions(tokens));
}

}  // namespace

void ProfileOptions::ForEach(config::FieldList& visit) {
  visit.BeginSection("Measurements");
  visit(context, {.flag = "--context",
                  .help = "tokens of the longest prompt, if the server has room for them",
                  .least = 1,
                  .most = 1 << 20});
  visit(
      decode,
      {.flag = "--decode", .help = "tokens that a sequence decodes", .least = 1, .most = 1 << 16});
  visit(repetitions, {.flag = "--repetitions,-r",
                      .help = "the median counts, after a warm-up",
                      .least = 1,
                      .most = 1000});
}

absl::StatusOr<ProfileSizes> ProfileSizes::Of(const coordinator::EngineConfig& engine,
                                              uint32_t usable_model_len,
                                              const ProfileOptions& options) {
  const coordinator::SchedulerConfig& scheduler = engine.scheduler;
  if (usable_model_len < options.decode + 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("--decode ", options.decode, " needs ", options.decode + 2,
                     " tokens of a sequence, the server has room for ", usable_model_len));
  }
  const uint32_t longest = usable_model_len - options.decode - 1;
  ProfileSizes sizes;
  sizes.prefill = Doubling(std::min(scheduler.MostStepTokens(), longest));
  // All of a batch are prefilled by one step.
  sizes.decode_context =
      std::clamp(scheduler.max_num_batched_tokens / scheduler.max_num_seqs, 1u,
                 std::min({kDecodeContext, longest, scheduler.MostStepTokens()}));
  sizes.long_context = std::clamp(options.context, sizes.decode_context, longest);
  if (const uint32_t chunk = sizes.prefill.back(); sizes.long_context > chunk) {
    sizes.long_context -= sizes.long_context % chunk;
  }
  const uint32_t several = std::min(kSeveralPrompts, scheduler.max_num_seqs);
  sizes.several_prompts = Fits(engine, several, sizes.prefill.back() / several + 1) ? several : 1;
  const uint32_t tokens = sizes.decode_context + 1 + options.decode;
  uint32_t sequences = scheduler.max_num_seqs;
  while (sequences > 1 && !Fits(engine, sequences, tokens)) --sequences;
  sizes.decode = Doubling(sequences);
  return sizes;
}

absl::StatusOr<StepMeasurements> ProfileSteps(Measure& measure, const ProfileSizes& sizes,
                                              const ProfileOptions& options,
                                              const ProgressFn& progress) {
  StepMeasurements steps;
  const auto prefill = [&](uint32_t tokens) { return measure.Prefill(tokens, 1); };
  const auto decode = [&](uint32_t sequences) {
    return measure.Decode(sequences, options.decode, 1);
  };
  TANDEM_ASSIGN_OR_RETURN(steps.prefill,
                          InRounds("prefill", sizes.prefill, options, progress, prefill));
  TANDEM_ASSIGN_OR_RETURN(steps.decode,
                          InRounds("decode", sizes.decode, options, progress, decode));
  // Of decoded tokens: the first one's step has the prompt's tokens and the one before it.
  steps.decode_positions = sizes.decode_context + (options.decode + 1) / 2.0;

  progress(absl::StrCat("prefill of ", sizes.long_context, ", and decode after it"));
  TANDEM_ASSIGN_OR_RETURN(const LongMeasurement longest,
                          measure.Long(sizes.long_context, options.decode, options.repetitions));
  steps.prefill_position_ns = NanosOfLaterSteps(steps.prefill, sizes.long_context, longest.prefill);
  if (sizes.long_context <= sizes.prefill.back()) {
    TANDEM_ASSIGN_OR_RETURN(steps.prefill_position_ns,
                            NanosOfOnePrompt(measure, steps, sizes, options.repetitions));
  }
  steps.decode_position_ns =
      NanosPerPosition(Micros(longest.decode_step_more),
                       static_cast<double>(sizes.long_context - sizes.decode_context));
  return steps;
}

}  // namespace tandem::client
