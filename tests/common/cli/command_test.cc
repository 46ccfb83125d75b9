#include "common/cli/command.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace tandem::cli {
namespace {

struct Options {
  std::string model;
  uint32_t seqs = 32;
  bool strict = true;
  bool eager = false;
  std::optional<int32_t> index;
  std::vector<std::string> stops;
  std::vector<uint32_t> batches = {1, 2};
};

class CommandTest : public ::testing::Test {
 protected:
  CommandTest() {
    command_.Add({options_.model, {.flag = "--model,-m", .required = true}});
    command_.Add({options_.seqs, {.flag = "--seqs", .least = 1, .most = 64}});
    command_.Add({options_.strict, {.flag = "--strict"}});
    command_.Add({options_.eager, {.flag = "--eager"}});
    command_.Add({options_.index, {.flag = "--index"}});
    command_.Add({options_.stops, {.flag = "--stop"}});
    command_.Add({options_.batches, {.flag = "--batch"}});
  }

  Options options_;
  Command command_{"test", "a test", "Examples: none"};
};

TEST_F(CommandTest, WhatIsNotGivenKeepsItsDefault) {
  ASSERT_TRUE(command_.Parse({"-m", "x.gguf"}).ok());
  EXPECT_EQ(options_.model, "x.gguf");
  EXPECT_EQ(options_.seqs, 32u);
  EXPECT_TRUE(options_.strict);
  EXPECT_FALSE(options_.index.has_value());
  EXPECT_EQ(options_.batches, (std::vector<uint32_t>{1, 2}));
}

TEST_F(CommandTest, SetsEveryKind) {
  const absl::Status parsed =
      command_.Parse({"--model=x", "--seqs", "4", "--no-strict", "--eager", "--index", "-1",
                      "--stop", "a,b", "--stop", "c", "--batch", "3,4", "--batch", "5"});
  ASSERT_TRUE(parsed.ok()) << parsed;
  EXPECT_EQ(options_.seqs, 4u);
  EXPECT_FALSE(options_.strict);
  EXPECT_TRUE(options_.eager);
  EXPECT_EQ(options_.index, -1);
  EXPECT_EQ(options_.stops, (std::vector<std::string>{"a,b", "c"}));
  EXPECT_EQ(options_.batches, (std::vector<uint32_t>{3, 4, 5}));
}

TEST_F(CommandTest, NumbersOfAListMayStandApart) {
  const absl::Status parsed =
      command_.Parse({"--batch", "1", "4,6", "8", "--stop", "a", "-m", "x"});
  ASSERT_TRUE(parsed.ok()) << parsed;
  EXPECT_EQ(options_.batches, (std::vector<uint32_t>{1, 4, 6, 8}));
  EXPECT_TRUE(absl::IsInvalidArgument(command_.Parse({"-m", "x", "--batch", "1", "many"})));
  // A text may be anything, so each has its own flag.
  EXPECT_TRUE(absl::IsInvalidArgument(command_.Parse({"-m", "x", "--stop", "a", "b"})));
}

TEST_F(CommandTest, BadUsageAndBadValuesDiffer) {
  EXPECT_TRUE(absl::IsInvalidArgument(command_.Parse({})));  // --model is required
  EXPECT_TRUE(absl::IsInvalidArgument(command_.Parse({"-m", "x", "--nonsense"})));
  EXPECT_TRUE(absl::IsInvalidArgument(command_.Parse({"-m", "x", "--seqs", "many"})));
  EXPECT_TRUE(absl::IsInvalidArgument(command_.Parse({"-m", "x", "-m", "y"})));
  EXPECT_EQ(command_.Parse({"-m", "x", "--seqs", "65"}),
            absl::OutOfRangeError("--seqs is 65, it must be from 1 to 64"));
}

TEST(SubcommandTest, TheChosenOneRuns) {
  int chosen = 0;
  uint32_t number = 0;
  Command program("test", "a test", "");
  program.AddCommand("one", "", "").OnRun([&] { return chosen = 1, absl::OkStatus(); });
  Command& two = program.AddCommand("two", "", "");
  two.Add({number, {.flag = "--number"}});
  two.OnRun([&] { return chosen = 2, absl::AbortedError("it failed"); });
  const char* const argv[] = {"test", "two", "--number", "7"};
  EXPECT_EQ(program.Main(4, argv), kFailed);
  EXPECT_EQ(chosen, 2);
  EXPECT_EQ(number, 7u);
  EXPECT_EQ(program.Main(1, argv), kBadUsage);
}

TEST(RequireOneOfTest, NoneAndTwoAreRefused) {
  std::string a, b;
  const auto parse = [&](const std::vector<std::string>& arguments) {
    Command command("test", "", "");
    command.Add({a, {.flag = "--a"}});
    command.Add({b, {.flag = "--b"}});
    command.RequireOneOf({"--a", "--b"});
    return command.Parse(arguments);
  };
  EXPECT_TRUE(parse({"--b", "x"}).ok());
  EXPECT_EQ(b, "x");
  EXPECT_TRUE(absl::IsInvalidArgument(parse({})));
  EXPECT_TRUE(absl::IsInvalidArgument(parse({"--a", "x", "--b", "y"})));
}

}  // namespace
}  // namespace tandem::cli
