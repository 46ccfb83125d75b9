// Log-probabilities through a real server and the command line: what `prompt_logprobs` and
// `logprobs` say of every golden prompt, against the log-softmax of the reference logits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/cluster/golden_cases.h"
#include "tests/cluster/server.h"

namespace tandem::testing {
namespace {

using nlohmann::json;

constexpr double kMaxDiff = 1e-3;
constexpr int kTop = 20;

// One row of reference logits as log-probabilities.
class Reference {
 public:
  explicit Reference(const std::vector<float>& logits) : sorted_(logits.begin(), logits.end()) {
    const double largest = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (float logit : logits) sum += std::exp(logit - largest);
    for (double& value : sorted_) value -= largest + std::log(sum);
    logprobs_ = sorted_;
    std::sort(sorted_.begin(), sorted_.end(), std::greater<>());
  }

  // An entry of the answer, about `token`.
  void Check(const json& entry, TokenId token) const {
    CheckOne(entry, token);
    const json& top = entry.at("top");
    ASSERT_EQ(top.size(), size_t{kTop});
    for (size_t i = 0; i < top.size(); ++i) {
      CheckOne(top[i], top[i].at("token_id").get<TokenId>());
      EXPECT_NEAR(top[i].at("logprob").get<double>(), sorted_[i], kMaxDiff) << "top " << i;
      EXPECT_LE(top[i].at("rank").get<size_t>(), i + 1);
    }
    EXPECT_EQ(top[0].at("rank"), 1);
  }

 private:
  void CheckOne(const json& entry, TokenId token) const {
    EXPECT_EQ(entry.at("token_id"), token);
    const double reference = logprobs_.at(static_cast<size_t>(token));
    EXPECT_NEAR(entry.at("logprob").get<double>(), reference, kMaxDiff);
    // Ranks may differ only among those that are as close as that.
    const auto larger_than = [&](double value) {
      return std::count_if(logprobs_.begin(), logprobs_.end(), [&](double x) { return x > value; });
    };
    EXPECT_GE(entry.at("rank").get<int64_t>(), 1 + larger_than(reference + 2 * kMaxDiff));
    EXPECT_LE(entry.at("rank").get<int64_t>(), 1 + larger_than(reference - 2 * kMaxDiff));
  }

  std::vector<double> logprobs_;  // by id
  std::vector<double> sorted_;    // largest first
};

void CheckAnswer(const json& answer, const GoldenCase& one) {
  ASSERT_EQ(answer.at("token_ids").get<std::vector<TokenId>>(), one.greedy);
  const json& generated = answer.at("logprobs");
  ASSERT_EQ(generated.size(), one.greedy.size());
  for (size_t i = 0; i < generated.size(); ++i) {
    EXPECT_EQ(generated[i].at("token_id"), one.greedy[i]);
    EXPECT_EQ(generated[i].at("rank"), 1) << "the greedy token is the likeliest";
    EXPECT_EQ(generated[i].at("top")[0].at("logprob"), generated[i].at("logprob"));
  }
  const json& prompt = answer.at("prompt_logprobs");
  ASSERT_EQ(prompt.size(), one.tokens.size());
  EXPECT_TRUE(prompt[0].is_null());
  for (size_t i = 1; i < prompt.size(); ++i) {
    EXPECT_EQ(prompt[i].at("token_id"), one.tokens[i]);
    EXPECT_LE(prompt[i].at("logprob").get<double>(), 0);
  }
  for (size_t row = 0; row < one.positions.size(); ++row) {
    const size_t next = static_cast<size_t>(one.positions[row]) + 1;
    SCOPED_TRACE(absl::StrCat("the row of position ", next - 1));
    const Reference reference(one.logits[row]);
    if (next < one.tokens.size()) {
      reference.Check(prompt[next], one.tokens[next]);
    } else {
      reference.Check(generated[0], one.greedy[0]);
    }
  }
}

// Model, ranks, tokens of a prefill chunk (0: whole prompts).
using Parameters = std::tuple<std::string, int, int>;

class LogprobsTest : public ::testing::TestWithParam<Parameters> {};

TEST_P(LogprobsTest, AreTheLogSoftmaxOfTheReferenceLogits) {
  const auto& [name, ranks, chunk] = GetParam();
  const GoldenModel golden = ReadArchGolden(name);
  std::vector<std::string> flags = {"--kv-cache-type", "f32", "--tensor-parallel-size",
                                    absl::StrCat(ranks)};
  if (chunk != 0) flags.insert(flags.end(), {"--chunked-prefill-size", absl::StrCat(chunk)});
  const auto server = TestServer::Start(golden.path, flags);
  ASSERT_NE(server, nullptr);

  std::string lines;
  for (const GoldenCase& one : golden.cases) {
    absl::StrAppend(&lines, "{\"prompt_token_ids\": [", absl::StrJoin(one.tokens, ","), "]}\n");
  }
  // Twice: the second time the prompts stand in the prefix cache.
  for (int round = 0; round < 2; ++round) {
    const Finished answers = server->Generate(
        {"--prompts-file", "-", "--temperature", "0", "--ignore-eos", "--max-tokens", "32",
         "--logprobs", absl::StrCat(kTop), "--prompt-logprobs", absl::StrCat(kTop)},
        lines);
    ASSERT_EQ(answers.exit_code, 0) << answers.err;
    std::istringstream out(answers.out);
    for (const GoldenCase& one : golden.cases) {
      SCOPED_TRACE(absl::StrCat("prompt of ", one.tokens.size(), " tokens, round ", round));
      std::string line;
      ASSERT_TRUE(std::getline(out, line));
      const json answer = json::parse(line);
      ASSERT_NO_FATAL_FAILURE(CheckAnswer(answer, one));
      EXPECT_EQ(answer.at("usage").at("cached_tokens"), 0);
    }
  }
}

std::vector<Parameters> AllParameters() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(GoldenPath("arch"))) {
    names.insert(entry.path().filename().string());
  }
  std::vector<Parameters> all;
  for (const std::string& name : names) {
    for (int ranks : {1, 2}) {
      for (int chunk : {0, 5}) all.emplace_back(name, ranks, chunk);
    }
  }
  return all;
}

std::string TestName(const ::testing::TestParamInfo<Parameters>& info) {
  const auto& [name, ranks, chunk] = info.param;
  std::string text = absl::StrCat(name, "_tp", ranks, chunk == 0 ? "" : "_chunks_of_5");
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
}

INSTANTIATE_TEST_SUITE_P(Models, LogprobsTest, ::testing::ValuesIn(AllParameters()), TestName);

// A request that asks for N gets N, and one that does not ask gets none, in one batch.
TEST(LogprobsOfABatchTest, EveryRequestGetsItsOwn) {
  const GoldenModel golden = ReadArchGolden("llama");
  const auto server = TestServer::Start(golden.path, {"--kv-cache-type", "f32"});
  ASSERT_NE(server, nullptr);
  const std::string prompt =
      absl::StrCat("{\"prompt_token_ids\": [", absl::StrJoin(golden.cases[2].tokens, ","), "]");
  const Finished answers = server->Generate(
      {"--prompts-file", "-", "--temperature", "0", "--ignore-eos", "--max-tokens", "3"},
      absl::StrCat(prompt, "}\n", prompt, ", \"logprobs\": 0}\n", prompt,
                   ", \"prompt_logprobs\": 2}\n", prompt, ", \"logprobs\": 21}\n"));
  std::istringstream out(answers.out);
  std::vector<json> lines;
  for (std::string line; std::getline(out, line);) lines.push_back(json::parse(line));
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_FALSE(lines[0].contains("logprobs") || lines[0].contains("prompt_logprobs"));
  EXPECT_FALSE(lines[1].contains("prompt_logprobs"));
  ASSERT_EQ(lines[1].at("logprobs").size(), 3u);
  EXPECT_TRUE(lines[1].at("logprobs")[0].at("top").empty());
  EXPECT_FALSE(lines[2].contains("logprobs"));
  ASSERT_EQ(lines[2].at("prompt_logprobs").size(), 33u);
  EXPECT_EQ(lines[2].at("prompt_logprobs")[32].at("top").size(), 2u);
  EXPECT_EQ(lines[3].at("code"), "INVALID_ARGUMENT");
  EXPECT_EQ(lines[3].at("error"), "sampling.logprobs is 21, it must be from 0 to 20");
}

}  // namespace
}  // namespace tandem::testing
