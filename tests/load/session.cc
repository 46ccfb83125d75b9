#include "tests/load/session.h"

#include <cmath>
#include <cstdint>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/status.h"
#include "tests/load/arrivals.h"
#include "tests/load/html_report.h"
#include "tests/load/result_file.h"
#include "tests/load/sweep.h"

namespace tandem::load {
namespace {

// The random numbers of a run (0: the warm-up). No two runs share prompts, whatever the seeds of
// their commands: a server's prefix cache knows those that were sent before.
std::mt19937_64 RandomOf(uint64_t seed, uint64_t run) {
  std::seed_seq words{seed & 0xffffffff, seed >> 32, run};
  return std::mt19937_64(words);
}

std::vector<double> Times(const LoadOptions& options, const std::vector<LoadRequest>& requests,
                          double rate, std::mt19937_64& random) {
  std::vector<double> times;
  if (options.dataset.name == DatasetKind::kReplay && options.dataset.self_timed) {
    for (const LoadRequest& request : requests) times.push_back(request.at_s);
  } else if (!std::isinf(rate)) {
    times = (options.sweep ? EvenArrivalTimes : ArrivalTimes)(requests.size(), rate,
                                                              options.burstiness, random);
  }
  return times;
}

}  // namespace

absl::Status Session::Connect() {
  TANDEM_ASSIGN_OR_RETURN(model_, target_.Model());
  if (options_.dataset.vocab_size > 0) model_.vocab_size = options_.dataset.vocab_size;
  return absl::OkStatus();
}

absl::Status Session::WarmUp() {
  if (options_.num_warmups == 0) return absl::OkStatus();
  std::mt19937_64 random = RandomOf(options_.dataset.seed, 0);
  DatasetOptions dataset = options_.dataset;
  dataset.num_prompts = options_.num_warmups;
  TANDEM_ASSIGN_OR_RETURN(
      const std::vector<LoadRequest> requests,
      MakeDataset(
          dataset, model_, [this](const std::string& text) { return target_.CountTokens(text); },
          random));
  TANDEM_ASSIGN_OR_RETURN(
      const RunRecord record,
      target_.Run(requests, {.max_concurrency = 1, .request_timeout = options_.timeout}));
  for (const Sample& sample : record.samples) {
    if (!sample.completed()) {
      return absl::UnavailableError(absl::StrCat("a warm-up request failed: ", sample.error));
    }
  }
  return absl::OkStatus();
}

absl::Status Session::RunPoint(const Point& point, uint32_t num_prompts, Duration max_duration) {
  std::mt19937_64 random = RandomOf(options_.dataset.seed, 1 + results_.size());
  DatasetOptions dataset = options_.dataset;
  dataset.num_prompts = num_prompts;
  TANDEM_ASSIGN_OR_RETURN(
      std::vector<LoadRequest> requests,
      MakeDataset(
          dataset, model_, [this](const std::string& text) { return target_.CountTokens(text); },
          random));
  AssignClients(options_.cancel_fraction, options_.slow_fraction, random, requests);
  const RunSettings settings{.times_s = Times(options_, requests, point.rate, random),
                             .max_concurrency = point.max_concurrency,
                             .max_duration = max_duration,
                             .request_timeout = options_.timeout};
  RunResult result;
  result.date = absl::FormatTime("%Y%m%d-%H%M%S", absl::Now(), absl::LocalTimeZone());
  result.model = model_.name;
  TANDEM_ASSIGN_OR_RETURN(result.record, target_.Run(requests, settings));
  result.record.request_rate = point.rate;
  result.record.burstiness = options_.burstiness;
  TANDEM_ASSIGN_OR_RETURN(const auto metrics, ParseMetricNames(options_.percentile_metrics));
  TANDEM_ASSIGN_OR_RETURN(const Objectives objectives, ParseObjectives(options_.goodput));
  result.metrics = ComputeMetrics(result.record, metrics, options_.metric_percentiles, objectives);
  out_ << FormatResult(result) << std::flush;
  results_.push_back(std::move(result));
  if (!out_) return absl::DataLossError("the results cannot be printed");
  const RunRecord& record = results_.back().record;
  if (record.end == RunEnd::kInterrupted) return absl::CancelledError(record.end_reason);
  if (record.end == RunEnd::kServerLost) return absl::UnavailableError(record.end_reason);
  return absl::OkStatus();
}

absl::Status Session::RunPoints() {
  std::vector<std::optional<uint32_t>> limits(options_.max_concurrencies.begin(),
                                              options_.max_concurrencies.end());
  if (limits.empty()) limits.push_back(std::nullopt);
  for (const double rate : options_.request_rates) {
    for (const auto& limit : limits) {
      TANDEM_RETURN_IF_ERROR(
          RunPoint({rate, limit}, options_.dataset.num_prompts, options_.max_duration));
    }
  }
  return absl::OkStatus();
}

absl::Status Session::RunSweep() {
  std::optional<uint32_t> limit;
  if (!options_.max_concurrencies.empty()) limit = options_.max_concurrencies.front();
  const auto run = [&](double rate, uint32_t num_prompts) -> absl::StatusOr<const RunResult*> {
    // The few prompts of a low rate take longer than others.
    const double needed_s = num_prompts / rate + 1;
    TANDEM_RETURN_IF_ERROR(RunPoint({rate, limit}, num_prompts, FromSeconds(needed_s)));
    return &results_.back();
  };
  return Sweep(options_, run, out_).Search();
}

absl::Status Session::WriteFiles() const {
  absl::Status status;
  if (!options_.save_result.empty()) {
    std::string lines;
    for (const RunResult& result : results_)
      absl::StrAppend(&lines, ToJson(result, options_), "\n");
    status = WriteResultFile(options_.save_result, lines);
  }
  if (!options_.html.empty()) {
    status.Update(WriteResultFile(options_.html, HtmlReport(results_, command_line_)));
  }
  return status;
}

absl::Status Session::Judge() const {
  size_t failed = 0;
  for (const RunResult& result : results_) failed += result.metrics.failed;
  if (failed == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(failed, " requests failed"));
}

absl::Status Session::Run() {
  TANDEM_RETURN_IF_ERROR(Connect());
  absl::Status status = WarmUp();
  if (status.ok()) status = options_.sweep ? RunSweep() : RunPoints();
  if (!results_.empty()) {
    out_ << FormatDefinitions() << std::flush;
    if (const absl::Status written = WriteFiles(); !written.ok()) return written;
  }
  if (!out_) status.Update(absl::DataLossError("the results cannot be printed"));
  status.Update(Judge());
  return status;
}

}  // namespace tandem::load
