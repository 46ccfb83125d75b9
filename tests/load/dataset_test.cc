#include "tests/load/dataset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

namespace tandem::load {
namespace {

const ModelFacts kModel{.name = "m", .vocab_size = 50, .special_ids = {0, 7}};

absl::StatusOr<uint32_t> OneForEachByte(const std::string& text) {
  return static_cast<uint32_t>(text.size());
}

absl::StatusOr<std::vector<LoadRequest>> Replay(const std::string& text,
                                                DatasetOptions options = {}) {
  std::istringstream file(text);
  std::mt19937_64 random(1);
  return ReplayDataset(options, file, kModel, random);
}

absl::StatusOr<std::vector<LoadRequest>> ShareGpt(const std::string& text,
                                                  DatasetOptions options = {}) {
  std::istringstream file(text);
  std::mt19937_64 random(1);
  return ShareGptDataset(options, file, OneForEachByte, random);
}

TEST(RandomDatasetTest, HasTheLengthsAndNoSpecialIds) {
  DatasetOptions options;
  options.num_prompts = 200;
  options.random_input_len = 100;
  options.random_output_len = 10;
  options.random_range_ratio = 0.3;
  std::mt19937_64 random(1);
  std::set<uint32_t> lengths;
  const auto requests = RandomDataset(options, kModel, random);
  EXPECT_EQ(requests.size(), 200u);
  for (const LoadRequest& request : requests) {
    EXPECT_EQ(request.prompt_tokens, request.token_ids.size());
    EXPECT_GE(request.prompt_tokens, 70u);
    EXPECT_LE(request.prompt_tokens, 130u);
    EXPECT_GE(request.output_tokens, 7u);
    EXPECT_LE(request.output_tokens, 13u);
    lengths.insert(request.prompt_tokens);
    for (const int32_t id : request.token_ids) {
      EXPECT_TRUE(id > 0 && id < 50 && id != 7) << id;
    }
  }
  EXPECT_GT(lengths.size(), 30u);
  std::mt19937_64 again(1);
  EXPECT_EQ(RandomDataset(options, kModel, again)[99].token_ids, requests[99].token_ids);
}

TEST(RandomDatasetTest, WithoutARangeAllLengthsAreEqual) {
  DatasetOptions options;
  options.num_prompts = 5;
  std::mt19937_64 random(1);
  for (const LoadRequest& request : RandomDataset(options, kModel, random)) {
    EXPECT_EQ(request.prompt_tokens, 1024u);
    EXPECT_EQ(request.output_tokens, 128u);
  }
}

TEST(PrefixDatasetTest, PromptsSharePrefixesEvenly) {
  DatasetOptions options;
  options.num_prompts = 12;
  options.num_prefixes = 4;
  options.prefix_len = 20;
  options.suffix_len = 5;
  options.prefix_output_len = 3;
  std::mt19937_64 random(1);
  std::map<std::vector<int32_t>, int> uses;
  std::set<std::vector<int32_t>> prompts;
  for (const LoadRequest& request : PrefixDataset(options, kModel, random)) {
    ASSERT_EQ(request.token_ids.size(), 25u);
    EXPECT_EQ(request.output_tokens, 3u);
    ++uses[{request.token_ids.begin(), request.token_ids.begin() + 20}];
    prompts.insert(request.token_ids);
  }
  EXPECT_EQ(uses.size(), 4u);
  for (const auto& [prefix, count] : uses) EXPECT_EQ(count, 3);
  EXPECT_EQ(prompts.size(), 12u);
}

TEST(ShareGptDatasetTest, KeepsUsablePairs) {
  const std::string file = R"([
    {"conversations": [{"value": "a prompt"}, {"value": "an answer!"}, {"value": "more"}]},
    {"conversations": [{"value": "abc"}, {"value": "too short a prompt"}]},
    {"conversations": [{"value": "too short an answer"}, {"value": "ab"}]},
    {"conversations": [{"value": "alone"}]},
    {"conversations": [{"value": ")" +
                           std::string(1025, 'x') + R"("}, {"value": "long"}]},
    {"other": 1}, 5, {"conversations": [{"value": 3}, {"value": "x"}]}])";
  const auto requests = ShareGpt(file);
  ASSERT_TRUE(requests.ok()) << requests.status();
  ASSERT_EQ(requests->size(), 1u);
  EXPECT_EQ(requests->front().text, "a prompt");
  EXPECT_EQ(requests->front().prompt_tokens, 8u);
  EXPECT_EQ(requests->front().output_tokens, 10u);
  DatasetOptions options;
  options.sharegpt_output_len = 3;
  const auto fixed = ShareGpt(file, options);
  ASSERT_TRUE(fixed.ok());
  EXPECT_EQ(fixed->size(), 2u) << "a given length makes short answers usable";
  for (const LoadRequest& request : *fixed) EXPECT_EQ(request.output_tokens, 3u);
}

TEST(ShareGptDatasetTest, RejectsOtherFiles) {
  for (const char* file : {"", "{", "{}", "[]", "[{\"conversations\": []}]", "[[]]"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ShareGpt(file).status())) << file;
  }
}

TEST(ReplayDatasetTest, ReadsTimesAndPrompts) {
  const auto requests = Replay(
      "{\"timestamp\": 1000, \"prompt\": \"hi\", \"output_length\": 4}\n\n"
      "{\"timestamp\": 1500.5, \"prompt_token_ids\": [3, 4], \"output_length\": 5}\n"
      "{\"timestamp\": 2000, \"input_length\": 9, \"output_length\": 6}\n");
  ASSERT_TRUE(requests.ok()) << requests.status();
  ASSERT_EQ(requests->size(), 3u);
  EXPECT_EQ((*requests)[0].text, "hi");
  EXPECT_EQ((*requests)[0].at_s, 0);
  EXPECT_EQ((*requests)[0].output_tokens, 4u);
  EXPECT_EQ((*requests)[1].token_ids, (std::vector<int32_t>{3, 4}));
  EXPECT_DOUBLE_EQ((*requests)[1].at_s, 0.5005);
  EXPECT_EQ((*requests)[2].token_ids.size(), 9u);
}

TEST(ReplayDatasetTest, EqualHashesAreEqualTokens) {
  const auto requests = Replay(
      "{\"timestamp\": 0, \"input_length\": 700, \"output_length\": 1, \"hash_ids\": [5, 6]}\n"
      "{\"timestamp\": 0, \"input_length\": 600, \"output_length\": 1, \"hash_ids\": [5, 9]}\n");
  ASSERT_TRUE(requests.ok()) << requests.status();
  const auto& one = (*requests)[0].token_ids;
  const auto& two = (*requests)[1].token_ids;
  ASSERT_EQ(one.size(), 700u);
  ASSERT_EQ(two.size(), 600u);
  EXPECT_TRUE(std::equal(one.begin(), one.begin() + 512, two.begin()));
  EXPECT_FALSE(std::equal(one.begin() + 512, one.begin() + 600, two.begin() + 512));
}

TEST(ReplayDatasetTest, WithoutTimesThePromptsRemain) {
  DatasetOptions options;
  options.self_timed = false;
  EXPECT_TRUE(Replay("{\"prompt\": \"x\", \"output_length\": 1}", options).ok());
}

TEST(ReplayDatasetTest, NamesTheBadLine) {
  const std::string good = "{\"timestamp\": 9, \"prompt\": \"x\", \"output_length\": 1}\n";
  for (const char* bad :
       {"5", "{", "{\"timestamp\": 9, \"prompt\": \"x\"}",
        "{\"timestamp\": 9, \"prompt\": 4, \"output_length\": 1}",
        "{\"timestamp\": 9, \"output_length\": 1}", "{\"prompt\": \"x\", \"output_length\": 1}",
        "{\"timestamp\": \"9\", \"prompt\": \"x\", \"output_length\": 1}",
        "{\"timestamp\": 9, \"prompt\": \"x\", \"output_length\": 0}",
        "{\"timestamp\": 9, \"prompt\": \"x\", \"output_length\": 1e3}",
        "{\"timestamp\": 9, \"prompt_token_ids\": [], \"output_length\": 1}",
        "{\"timestamp\": 9, \"prompt_token_ids\": [-1], \"output_length\": 1}",
        "{\"timestamp\": 9, \"input_length\": 99999999999, \"output_length\": 1}",
        "{\"timestamp\": 9, \"input_length\": 3, \"hash_ids\": [\"a\"], \"output_length\": 1}",
        "{\"timestamp\": 8, \"prompt\": \"x\", \"output_length\": 1}"}) {
    const auto requests = Replay(good + bad);
    EXPECT_TRUE(absl::IsInvalidArgument(requests.status())) << bad;
    EXPECT_EQ(requests.status().message().substr(0, 8), "line 2: ") << requests.status();
  }
  EXPECT_TRUE(absl::IsInvalidArgument(Replay("").status()));
}

TEST(MakeDatasetTest, NamesTheMissingFile) {
  DatasetOptions options;
  options.name = DatasetKind::kReplay;
  options.path = "no/such.jsonl";
  std::mt19937_64 random(1);
  const auto requests = MakeDataset(options, kModel, OneForEachByte, random);
  EXPECT_TRUE(absl::IsNotFound(requests.status()));
  EXPECT_EQ(requests.status().message(), "no/such.jsonl: cannot be opened");
}

TEST(AssignClientsTest, FractionsAreExact) {
  DatasetOptions options;
  options.num_prompts = 40;
  std::mt19937_64 random(1);
  auto requests = RandomDataset(options, kModel, random);
  AssignClients(0.25, 0.5, random, requests);
  size_t cancelled = 0, slow = 0;
  for (const LoadRequest& request : requests) {
    cancelled += request.cancel_after_messages > 0;
    slow += request.slow_reader;
    EXPECT_FALSE(request.slow_reader && request.cancel_after_messages > 0);
    EXPECT_LT(request.cancel_after_messages, request.output_tokens);
  }
  EXPECT_EQ(cancelled, 10u);
  EXPECT_EQ(slow, 20u);
}

}  // namespace
}  // namespace tandem::load
