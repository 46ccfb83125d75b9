#include "client/bench/profile.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "client/bench/bench_options.h"
#include "common/base/status.h"
#include "common/base/strings.h"

namespace tandem::client {
namespace {

using coordinator::MeasuredTimes;
using coordinator::StepMeasurements;

// For a file that people read.
double Tenths(double value) { return std::round(value * 10) / 10; }
double Micros(Duration time) { return std::chrono::duration<double, std::micro>(time).count(); }

std::vector<uint32_t> Doubling(uint32_t most) {
  std::vector<uint32_t> sizes;
  for (uint32_t size = 1; size < most; size *= 2) sizes.push_back(size);
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

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
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

// The times of a long prompt's steps as if each were a prompt of its own, and how many positions
// they see beyond those.
struct Chunks {
  double us = 0;
  double more_positions = 0;
};

Chunks AsPrompts(const MeasuredTimes& prefill, uint32_t tokens) {
  Chunks chunks;
  const uint32_t chunk = prefill.sizes.back();
  for (uint32_t begin = 0; begin < tokens; begin += chunk) {
    const uint32_t length = std::min(chunk, tokens - begin);
    const auto size = std::ranges::lower_bound(prefill.sizes, length);
    // Of a last, shorter one, its part of the next longer one that was measured.
    const double part = static_cast<double>(length) / *size;
    chunks.us += part * prefill.us[static_cast<size_t>(size - prefill.sizes.begin())];
    chunks.more_positions += static_cast<double>(length) * begin;
  }
  return chunks;
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
  sizes.decode_context = std::clamp(scheduler.max_num_batched_tokens / scheduler.max_num_seqs, 1u,
                                    std::min(kDecodeContext, longest));
  sizes.long_context = std::clamp(options.context, sizes.decode_context, longest);
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
  const Chunks chunks = AsPrompts(steps.prefill, sizes.long_context);
  steps.prefill_position_ns =
      NanosPerPosition(Micros(longest.prefill) - chunks.us, chunks.more_positions);
  steps.decode_position_ns =
      NanosPerPosition(Micros(longest.decode_step_more),
                       static_cast<double>(sizes.long_context - sizes.decode_context));
  return steps;
}

}  // namespace tandem::client
