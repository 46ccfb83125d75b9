#include "tests/load/sweep.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status.h"
#include "tests/load/saturation.h"

namespace tandem::load {
namespace {

constexpr double kShortestRunS = 20;
constexpr double kLongestRunS = 300;  // unless --max-duration
constexpr uint32_t kMinPrompts = 40;
constexpr uint32_t kMostPrompts = 100'000;
// Of the requests of a rate that is kept up with, so many are within --goodput.
constexpr double kLeastGood = 0.9;
// Of the rate that was found, for plans: it may be a little above the capacity, and at the capacity
// itself queues have no bound.
constexpr double kPlannedShare = 0.85;
// Of the requests within --goodput, by half the rate; less, and yet lower rates are of no use.
constexpr double kLeastGain = 0.01;

double LongestRun(const LoadOptions& options) {
  if (options.max_duration == LoadOptions().max_duration) return kLongestRunS;
  return std::chrono::duration<double>(options.max_duration).count();
}

// What --num-prompts says, if it was given, bounds all runs; on a server its default does not, so
// that runs can be long enough for high rates.
uint32_t MostPrompts(const LoadOptions& options) {
  const bool by_default = options.dataset.num_prompts == DatasetOptions().num_prompts;
  return by_default && options.simulate.empty() ? kMostPrompts : options.dataset.num_prompts;
}

}  // namespace

Sweep::Sweep(const LoadOptions& options, Run run, std::ostream& out)
    : options_(options),
      run_(std::move(run)),
      out_(out),
      longest_s_(LongestRun(options)),
      most_prompts_(MostPrompts(options)),
      search_(std::isinf(options.request_rates.front()) ? 1 : options.request_rates.front()) {}

uint32_t Sweep::NumPrompts(double rate, double seconds) const {
  const double wanted = std::ceil(rate * std::min(seconds, longest_s_));
  return std::min(static_cast<uint32_t>(std::clamp<double>(wanted, kMinPrompts, kMostPrompts)),
                  most_prompts_);
}

absl::StatusOr<Sweep::Verdict> Sweep::Judge(double rate, double seconds) {
  // A simulated second costs little.
  const bool all_at_once =
      !options_.simulate.empty() && options_.max_duration == LoadOptions().max_duration;
  uint32_t num_prompts = all_at_once ? most_prompts_ : NumPrompts(rate, seconds);
  for (;;) {
    TANDEM_ASSIGN_OR_RETURN(const RunResult* const result, run_(rate, num_prompts));
    const RunMetrics& metrics = result->metrics;
    if (metrics.completed + metrics.cancelled == 0) {
      return absl::InternalError("no request was completed");
    }
    if (!options_.goodput.empty() && !metrics.good_share) {
      return absl::InternalError(
          "--goodput: no request has latencies, all were cut or read slowly");
    }
    const Saturation saturation = JudgeSaturation(result->record);
    out_ << "At " << RateText(rate) << " requests/s " << Text(saturation) << "\n" << std::flush;
    const uint32_t longer = all_at_once ? num_prompts : NumPrompts(rate, saturation.wanted_s());
    // A file may have fewer requests.
    const bool longest = longer <= num_prompts || result->record.samples.size() < num_prompts;
    if (!saturation.clear() && !longest) {
      num_prompts = longer;
      continue;
    }
    if (!saturation.clear()) {
      out_ << absl::StrFormat(
          "That may be chance: requests came for %.0f s, the first took %.1f s each; raise "
          "--max-duration or --num-prompts to be sure\n",
          saturation.duration_s, saturation.latency_s);
    }
    return Verdict{.waits = saturation.saturated(),
                   .good = metrics.good_share.value_or(1),
                   .latency_s = saturation.latency_s};
  }
}

void Sweep::PrintFound() {
  const std::optional<double> kept_up = search_.kept_up();
  const std::optional<double> saturated = search_.saturated();
  out_ << (options_.goodput.empty() ? "Saturation: " : "Saturation, within --goodput: ");
  if (kept_up) out_ << "the server kept up with " << RateText(*kept_up);
  if (kept_up && saturated) out_ << ", ";
  if (saturated) out_ << "it did not with " << RateText(*saturated);
  out_ << " requests/s\n";
  if (kept_up) {
    out_ << "Plan with " << RateText(kPlannedShare * *kept_up) << " requests/s for each server, "
         << 100 * kPlannedShare << "% of that: at the limit queues have no end\n";
  }
  out_ << std::flush;
}

absl::Status Sweep::Search() {
  double seconds = kShortestRunS;
  std::optional<double> last_good;  // part, at twice the rate, if that was kept up with
  while (const std::optional<double> rate = search_.Next()) {
    TANDEM_ASSIGN_OR_RETURN(const Verdict verdict, Judge(*rate, seconds));
    const bool kept_up = !verdict.waits && verdict.good >= kLeastGood;
    search_.Add(kept_up);
    if (kept_up) seconds = std::max(kShortestRunS, Saturation::kLatencies * verdict.latency_s);
    // Requests that miss their objectives although none waits miss them at any rate.
    if (!search_.kept_up() && !verdict.waits && last_good &&
        verdict.good < *last_good + kLeastGain) {
      break;
    }
    last_good = verdict.waits ? std::nullopt : std::optional(verdict.good);
  }
  PrintFound();
  return absl::OkStatus();
}

}  // namespace tandem::load
