#include "client/sampling_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "common/base/status.h"

namespace tandem::client {
namespace {

// Arguments are separated by spaces.
absl::StatusOr<v1::GenerateRequest> TryParse(const std::string& arguments) {
  cli::Command command("generate", "", "");
  SamplingFlags flags;
  AddSamplingFlags(command, flags);
  const std::vector<std::string> split = absl::StrSplit(arguments, ' ', absl::SkipEmpty());
  TANDEM_RETURN_IF_ERROR(command.Parse(split));
  return MakeRequest(flags);
}

v1::GenerateRequest Parse(const std::string& arguments) { return TryParse(arguments).value(); }

TEST(SamplingFlags, LeaveTheDefaultsToTheServer) {
  const v1::GenerateRequest request = Parse("");
  EXPECT_EQ(request.sampling().ByteSizeLong(), 0u);
  EXPECT_FALSE(request.has_add_special_tokens());
  EXPECT_FALSE(request.has_parse_special_tokens());
}

TEST(SamplingFlags, ZeroIsNotUnset) {
  const v1::GenerateRequest request = Parse("--temperature 0 --seed 0 --top-k 0");
  EXPECT_TRUE(request.sampling().has_temperature());
  EXPECT_TRUE(request.sampling().has_seed());
  EXPECT_TRUE(request.sampling().has_top_k());
}

TEST(SamplingFlags, AllOfThem) {
  const v1::GenerateRequest request = Parse(
      "--max-tokens 9 --min-tokens 2 --temperature 0.5 --top-p 0.25 --top-k -1 --min-p 0.125 "
      "--seed 18446744073709551615 --stop a --stop [b] --logprobs 3 --prompt-logprobs 0 "
      "--stop-token-id 7,8 --stop-token-id 9 "
      "--ignore-eos --no-special "
      "--parse-special");
  const v1::SamplingParams& sampling = request.sampling();
  EXPECT_EQ(sampling.max_tokens(), 9);
  EXPECT_EQ(sampling.min_tokens(), 2);
  EXPECT_EQ(sampling.temperature(), 0.5f);
  EXPECT_EQ(sampling.top_p(), 0.25f);
  EXPECT_EQ(sampling.top_k(), -1);
  EXPECT_EQ(sampling.min_p(), 0.125f);
  EXPECT_EQ(sampling.seed(), 18446744073709551615u);
  ASSERT_EQ(sampling.stop_size(), 2);
  EXPECT_EQ(sampling.stop(0), "a");
  EXPECT_EQ(sampling.stop(1), "[b]");
  EXPECT_THAT(sampling.stop_token_ids(), testing::ElementsAre(7, 8, 9));
  EXPECT_EQ(sampling.logprobs(), 3);
  EXPECT_TRUE(sampling.has_prompt_logprobs());
  EXPECT_EQ(sampling.prompt_logprobs(), 0);
  EXPECT_TRUE(sampling.ignore_eos());
  EXPECT_FALSE(request.add_special_tokens());
  EXPECT_TRUE(request.has_add_special_tokens());
  EXPECT_TRUE(request.parse_special_tokens());
}

TEST(SamplingFlags, AllThatChangeLogits) {
  const v1::SamplingParams sampling =
      Parse(
          "--frequency-penalty 0.5 --presence-penalty -0.25 --repetition-penalty 1.5 "
          "--penalty-window 64 --logit-bias 7=-3.5 --logit-bias 9=100 --typical-p 0.75 "
          "--include-stop --bad-word a --bad-word [b] --dry-multiplier 0.5 --dry-base 2 "
          "--dry-allowed-length 3 --dry-penalty-last-n 99 --dry-sequence-breaker | "
          "--xtc-probability 0.125 --xtc-threshold 0.25")
          .sampling();
  v1::SamplingParams expected;
  expected.set_frequency_penalty(0.5f);
  expected.set_presence_penalty(-0.25f);
  expected.set_repetition_penalty(1.5f);
  expected.set_penalty_window(64);
  (*expected.mutable_logit_bias())[7] = -3.5f;
  (*expected.mutable_logit_bias())[9] = 100;
  expected.set_typical_p(0.75f);
  expected.set_include_stop(true);
  expected.add_bad_words("a");
  expected.add_bad_words("[b]");
  expected.set_dry_multiplier(0.5f);
  expected.set_dry_base(2);
  expected.set_dry_allowed_length(3);
  expected.set_dry_penalty_last_n(99);
  expected.add_dry_sequence_breakers("|");
  expected.set_xtc_probability(0.125f);
  expected.set_xtc_threshold(0.25f);
  EXPECT_EQ(sampling.DebugString(), expected.DebugString());
}

TEST(SamplingFlags, FormsOfTheAnswer) {
  const std::string path = testing::TempDir() + "/schema.json";
  std::ofstream(path) << R"({"const": 1})";
  EXPECT_EQ(Parse("--json-schema " + path).sampling().json_schema(), R"({"const": 1})");
  EXPECT_TRUE(Parse("--json-object").sampling().json_object());
  EXPECT_EQ(Parse("--grammar " + path).sampling().grammar(), R"({"const": 1})");
  EXPECT_EQ(Parse("--regex a*").sampling().regex(), "a*");
  const v1::SamplingParams sampling = Parse("--choice a --choice b").sampling();
  EXPECT_THAT(sampling.choice().texts(), testing::ElementsAre("a", "b"));
  for (const char* two : {"--json-object --regex a", "--grammar /dev/null --regex a"}) {
    EXPECT_THAT(std::string(TryParse(two).status().message()),
                testing::HasSubstr("only one can be"));
  }
  const v1::Reasoning reasoning =
      Parse("--regex a --reasoning-start < --reasoning-end > --answer-start :")
          .sampling()
          .reasoning();
  EXPECT_EQ(reasoning.start() + reasoning.end() + reasoning.answer_start(), "<>:");
  EXPECT_THAT(std::string(TryParse("--reasoning-end >").status().message()),
              testing::HasSubstr("needs one of --json-schema"));
  EXPECT_THAT(std::string(TryParse("--regex a --reasoning-start <").status().message()),
              testing::HasSubstr("need --reasoning-end"));
  EXPECT_EQ(TryParse("--json-schema /does/not/exist").status().code(), absl::StatusCode::kNotFound);
}

TEST(SamplingFlags, AnEmptyTextIsNoNumber) {
  for (const char* flag : {"--max-tokens", "--min-tokens", "--temperature", "--top-p", "--top-k",
                           "--min-p", "--seed", "--logprobs", "--stop-token-id"}) {
    cli::Command command("generate", "", "");
    SamplingFlags flags;
    AddSamplingFlags(command, flags);
    const absl::Status status = command.Parse({flag, ""});
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << flag << ": " << status;
    EXPECT_EQ(std::string(status.message()).rfind(std::string(flag) + " is '', it must be ", 0), 0u)
        << status;
  }
}

TEST(SamplingFlags, RangesAreChecked) {
  for (const char* wrong : {"--max-tokens 0",
                            "--min-tokens -1",
                            "--temperature -1",
                            "--top-p 0",
                            "--top-p nan",
                            "--top-k -2",
                            "--min-p 2",
                            "--logprobs 21",
                            "--prompt-logprobs -1",
                            "--stop-token-id -1",
                            "--stop \xff",
                            "--frequency-penalty 3",
                            "--presence-penalty -3",
                            "--repetition-penalty 0",
                            "--penalty-window 5000",
                            "--logit-bias 7",
                            "--logit-bias 7=x",
                            "--logit-bias -7=1",
                            "--logit-bias 7=101",
                            "--typical-p 0",
                            "--bad-word \xff",
                            "--dry-multiplier -1",
                            "--dry-base 0",
                            "--dry-allowed-length 0",
                            "--dry-penalty-last-n -2",
                            "--dry-sequence-breaker \xff",
                            "--xtc-probability 2",
                            "--xtc-threshold -1"}) {
    EXPECT_FALSE(TryParse(wrong).ok()) << wrong;
  }
  EXPECT_EQ(TryParse("--seed -1").status(),
            absl::InvalidArgumentError("--seed is '-1', it must be a whole number of at least 0"));
}

TEST(SamplingFlags, NumbersOutOfRangeAreRefused) {
  for (const char* wrong : {"--max-tokens 3000000000", "--seed 1.5", "--temperature warm"}) {
    const absl::Status status = TryParse(wrong).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << wrong;
    EXPECT_NE(status.message().find(" it must be a"), absl::string_view::npos) << status;
  }
}

}  // namespace
}  // namespace tandem::client
