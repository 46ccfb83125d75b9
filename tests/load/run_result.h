// RunResult: a run with its figures, and its forms for people and programs.
#ifndef TANDEM_TESTS_LOAD_RUN_RESULT_H_
#define TANDEM_TESTS_LOAD_RUN_RESULT_H_

#include <string>

#include "tests/load/metrics.h"
#include "tests/load/options.h"
#include "tests/load/run_record.h"

namespace tandem::load {

struct RunResult {
  std::string date;  // "20261122-063000", as in vLLM's results
  std::string model;
  RunRecord record;
  RunMetrics metrics;
};

// One JSON object on one line, with vLLM's keys; `--save-detailed` adds every request's samples.
std::string ToJson(const RunResult& result, const LoadOptions& options);

// A table for a terminal, each line ending in a newline.
std::string FormatResult(const RunResult& result);

// What each figure means, each line ending in a newline.
std::string FormatDefinitions();

// "inf", "2.5"; six digits.
std::string RateText(double rate);
// "p99", "p99.9".
std::string PercentileKey(double percent);
const MetricText& TextOf(MetricName metric);
const char* Name(Outcome outcome);
const char* Name(RunEnd end);

}  // namespace tandem::load

#endif  // TANDEM_TESTS_LOAD_RUN_RESULT_H_
