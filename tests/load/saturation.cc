#include "tests/load/saturation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_format.h"
#include "tests/load/summary.h"

namespace tandem::load {
namespace {

// Parts of the run: the first fills the server; of the last the requests are not judged, since
// those that come after them keep the server as busy as it was.
constexpr double kFilled = 0.3;
constexpr double kJudged = 0.85;
constexpr size_t kGroups = 8;  // of requests that came one after another, whose means are compared
constexpr size_t kFewest = 2;  // of a group
constexpr double kErrors = 3;  // so many standard errors are hardly chance
constexpr double kLonger = 1.2;  // than a run just long enough, as latencies vary

bool Counts(const Sample& sample) {
  return (sample.completed() || sample.outcome == Outcome::kCancelled) && !sample.slow_reader &&
         !sample.arrivals.empty();
}

std::vector<const Sample*> CameIn(const RunRecord& record, double from_s, double to_s) {
  std::vector<const Sample*> samples;
  for (const Sample& sample : record.samples) {
    const bool came = sample.intended_s >= from_s && sample.intended_s < to_s;
    if (came && Counts(sample)) samples.push_back(&sample);
  }
  return samples;
}

// Mean seconds per token after the first.
double Pace(const std::vector<const Sample*>& samples) {
  double seconds = 0;
  double tokens = 0;
  for (const Sample* sample : samples) {
    seconds += sample->e2el_s() - sample->ttft_s();
    tokens += sample->output_tokens > 1 ? sample->output_tokens - 1 : 0;
  }
  return tokens > 0 ? seconds / tokens : 0;
}

struct Point {
  double at_s;
  double delay_s;
};

// Means of when they came and of their latencies without what the answer's own length explains,
// whose spread would hide a growth.
Point MeanOf(const std::vector<const Sample*>& samples, size_t begin, size_t end, double pace) {
  Point sum{};
  for (size_t i = begin; i < end; ++i) {
    const Sample& sample = *samples[i];
    const double tokens = sample.output_tokens > 1 ? sample.output_tokens - 1 : 0;
    sum.at_s += sample.intended_s;
    sum.delay_s += sample.e2el_s() - pace * tokens;
  }
  const auto count = static_cast<double>(end - begin);
  return {sum.at_s / count, sum.delay_s / count};
}

// The line of least squares through the means of groups. Successive requests wait in one queue, so
// that the spread of groups says more about chance than that of requests.
void JudgeGrowth(const RunRecord& record, Saturation& saturation) {
  const auto samples =
      CameIn(record, kFilled * saturation.duration_s, kJudged * saturation.duration_s);
  if (samples.size() < kGroups * kFewest) {
    saturation.error = std::numeric_limits<double>::infinity();
    return;
  }
  const double pace = Pace(samples);
  std::vector<Point> points;
  Point mean{};
  for (size_t i = 0; i < kGroups; ++i) {
    points.push_back(
        MeanOf(samples, samples.size() * i / kGroups, samples.size() * (i + 1) / kGroups, pace));
    mean.at_s += points.back().at_s / kGroups;
    mean.delay_s += points.back().delay_s / kGroups;
  }
  double xx = 0, xy = 0, yy = 0;
  for (const Point& point : points) {
    const double x = point.at_s - mean.at_s;
    const double y = point.delay_s - mean.delay_s;
    xx += x * x;
    xy += x * y;
    yy += y * y;
  }
  if (xx == 0) {
    saturation.error = std::numeric_limits<double>::infinity();
    return;
  }
  saturation.growth = xy / xx;
  saturation.error = std::sqrt(std::max(yy - xy * xy / xx, 0.0) / (kGroups - 2) / xx);
}

}  // namespace

bool Saturation::clear() const {
  if (failed_share > kTolerance || growth - kErrors * error > kPlain) return true;
  return steady() && std::abs(growth - kTolerance) > kErrors * error;
}

double Saturation::wanted_s() const {
  return std::max(kLonger * kLatencies * latency_s, steady() ? 2 * duration_s : 0);
}

Saturation JudgeSaturation(const RunRecord& record) {
  Saturation saturation;
  if (record.samples.empty()) return saturation;
  size_t failed = 0;
  for (const Sample& sample : record.samples) {
    saturation.duration_s = std::max(saturation.duration_s, sample.intended_s);
    failed += sample.outcome == Outcome::kFailed;
  }
  saturation.failed_share =
      static_cast<double>(failed) / static_cast<double>(record.samples.size());
  std::vector<double> latencies;
  for (const Sample* sample : CameIn(record, 0, kFilled * saturation.duration_s)) {
    latencies.push_back(sample->e2el_s());
  }
  saturation.latency_s = Summarize(std::move(latencies), {}).mean;
  JudgeGrowth(record, saturation);
  return saturation;
}

std::string Text(const Saturation& saturation) {
  std::string text =
      std::isinf(saturation.error)
          ? "too few requests to judge"
          : absl::StrFormat("latencies grew by %.1f%% of the time (standard error %.1f%%)",
                            100 * saturation.growth, 100 * saturation.error);
  if (saturation.failed_share > 0) {
    absl::StrAppendFormat(&text, ", %.1f%% of the requests failed", 100 * saturation.failed_share);
  }
  return text + (saturation.saturated() ? ": not kept up" : ": kept up");
}

}  // namespace tandem::load
