#include "tests/load/options.h"

#include <gtest/gtest.h>

#include "common/cli/command.h"
#include "tests/load/objectives.h"

namespace tandem::load {
namespace {

absl::Status Parse(const std::vector<std::string>& arguments, LoadOptions& options) {
  cli::Command program("tandem_load", "", "");
  config::FieldList fields;
  options.ForEach(fields);
  program.Add(fields);
  if (absl::Status status = program.Parse(arguments); !status.ok()) return status;
  return options.Check();
}

TEST(LoadOptionsTest, TakesVllmsFlags) {
  LoadOptions options;
  const absl::Status status = Parse({"--dataset-name",
                                     "random",
                                     "--num-prompts",
                                     "7",
                                     "--request-rate",
                                     "2.5",
                                     "--burstiness",
                                     "0.5",
                                     "--max-concurrency",
                                     "4",
                                     "--random-input-len",
                                     "11",
                                     "--random-output-len",
                                     "12",
                                     "--random-range-ratio",
                                     "0.2",
                                     "--percentile-metrics",
                                     "ttft,itl",
                                     "--metric-percentiles",
                                     "50,99.9",
                                     "--goodput",
                                     "ttft:100,tpot:20,e2el:900",
                                     "--ignore-eos",
                                     "--priority",
                                     "-3",
                                     "--seed",
                                     "3"},
                                    options);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(options.dataset.num_prompts, 7u);
  EXPECT_EQ(options.request_rates, std::vector<double>{2.5});
  EXPECT_EQ(options.max_concurrencies, std::vector<uint32_t>{4});
  EXPECT_EQ(options.metric_percentiles, (std::vector{50, 99.9}));
  EXPECT_TRUE(options.ignore_eos);
  EXPECT_EQ(options.priority, -3);
  const auto objectives = ParseObjectives(options.goodput);
  ASSERT_TRUE(objectives.ok());
  EXPECT_EQ(objectives->ttft_ms, 100);
  EXPECT_EQ(objectives->tpot_ms, 20);
  EXPECT_EQ(objectives->e2el_ms, 900);
}

TEST(LoadOptionsTest, TakesSeveralRuns) {
  LoadOptions options;
  ASSERT_TRUE(Parse({"--request-rate", "1,inf", "--max-concurrency", "1,4,16"}, options).ok());
  EXPECT_EQ(options.request_rates, (std::vector{1, kUnlimited}));
  EXPECT_EQ(options.max_concurrencies.size(), 3u);
}

TEST(LoadOptionsTest, RejectsWhatIsNoLoad) {
  const std::vector<std::vector<std::string>> wrong = {
      {"--nonsense"},
      {"--num-prompts", "0"},
      {"--request-rate", "0"},
      {"--request-rate", "nan"},
      {"--burstiness", "-1"},
      {"--random-range-ratio", "1"},
      {"--cancel-fraction", "1.5"},
      {"--slow-fraction", "-0.1"},
      {"--cancel-fraction", "0.6", "--slow-fraction", "0.6"},
      {"--percentile-metrics", "ttft,tft"},
      {"--metric-percentiles", "101"},
      {"--goodput", "ttft"},
      {"--goodput", "itl:5"},
      {"--goodput", "ttft:-5"},
      {"--dataset-name", "sonnet"},
      {"--dataset-name", "sharegpt"},
      {"--dataset-name", "random", "--dataset-path", "x"},
      {"--dataset-name", "replay", "--dataset-path", "x", "--request-rate", "3"},
      {"--dataset-name", "replay", "--dataset-path", "x", "--sweep"},
      {"--sweep", "--request-rate", "1,2"},
      {"--backend", "triton"},
      {"--max-concurrency", "0"},
      {"--timeout", "0s"},
      {"--priority", "101"},
      {"--save-detailed"},
      {"--server", "nowhere"},
      {"--tls-client-cert", "x"},
      {"--tls-server-name", "x"},
      {"--token-file", "x", "--server", "elsewhere:1"},
      {"--backend", "openai", "--tls-client-key", "x"},
      {"--backend", "openai", "--token-file", "x"},
      {"--backend", "openai", "--tls-ca", "x", "--tls-server-name", "x"},
      {"--backend", "openai", "--tls", "--server", "http://a:1"},
      {"--simulate", "x", "--tls"},
  };
  for (const auto& arguments : wrong) {
    LoadOptions options;
    EXPECT_FALSE(Parse(arguments, options).ok()) << arguments.front();
  }
}

}  // namespace
}  // namespace tandem::load
