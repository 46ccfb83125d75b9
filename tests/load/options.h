// The command line of tandem_load. Flags that vLLM's serving benchmark has keep its names and
// meanings.
#ifndef TANDEM_TESTS_LOAD_OPTIONS_H_
#define TANDEM_TESTS_LOAD_OPTIONS_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/connection_flags.h"
#include "common/base/clock.h"
#include "common/config/field.h"

namespace tandem::load {

enum class BackendKind { kTandem, kOpenAi };
enum class DatasetKind { kRandom, kShareGpt, kPrefix, kReplay };

inline constexpr double kUnlimited = std::numeric_limits<double>::infinity();

struct DatasetOptions {
  DatasetKind name = DatasetKind::kRandom;
  std::string path;
  uint32_t num_prompts = 1000;
  uint32_t random_input_len = 1024;
  uint32_t random_output_len = 128;
  double random_range_ratio = 0;
  uint32_t num_prefixes = 10;
  uint32_t prefix_len = 256;
  uint32_t suffix_len = 256;
  uint32_t prefix_output_len = 128;
  std::optional<uint32_t> sharegpt_output_len;
  uint32_t vocab_size = 0;
  uint64_t seed = 0;
  bool self_timed = true;
};

struct LoadOptions {
  // Server
  client::Connection connection{.all_addresses = true};
  BackendKind backend = BackendKind::kTandem;
  std::string endpoint = "/v1/completions";
  std::string model;
  std::string adapter;
  Duration timeout = std::chrono::minutes(10);
  std::string simulate{};
  std::vector<std::string> simulate_with{};
  // Requests
  DatasetOptions dataset;
  bool ignore_eos = false;
  std::optional<float> temperature;
  std::optional<int32_t> priority;
  double cancel_fraction = 0;
  double slow_fraction = 0;
  Duration slow_read_delay = std::chrono::milliseconds(100);
  // Arrivals
  std::vector<double> request_rates = {kUnlimited};
  double burstiness = 1;
  std::vector<uint32_t> max_concurrencies;
  Duration max_duration = std::chrono::hours(24);
  uint32_t num_warmups = 0;
  bool sweep = false;
  // Results
  std::vector<std::string> percentile_metrics = {"ttft,tpot,itl,e2el"};
  std::vector<double> metric_percentiles = {50, 90, 99};
  std::vector<std::string> goodput;
  std::string label;
  std::string save_result;
  bool save_detailed = false;
  std::string html;
  Duration stats_interval = std::chrono::milliseconds(500);
  bool progress = true;

  void ForEach(config::FieldList& visit);
  // INVALID_ARGUMENT, in terms of the flags, for values that are no load.
  absl::Status Check() const;
};

}  // namespace tandem::load

namespace tandem::config {

template <>
struct EnumNames<load::BackendKind> {
  static constexpr std::pair<load::BackendKind, const char*> kNames[] = {
      {load::BackendKind::kTandem, "tandem"}, {load::BackendKind::kOpenAi, "openai"}};
};

template <>
struct EnumNames<load::DatasetKind> {
  static constexpr std::pair<load::DatasetKind, const char*> kNames[] = {
      {load::DatasetKind::kRandom, "random"},
      {load::DatasetKind::kShareGpt, "sharegpt"},
      {load::DatasetKind::kPrefix, "prefix"},
      {load::DatasetKind::kReplay, "replay"}};
};

}  // namespace tandem::config

#endif  // TANDEM_TESTS_LOAD_OPTIONS_H_
