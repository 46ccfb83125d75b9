#include "common/cli/command.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
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
  EXPECT_EQ(command_.Parse({"-m", "x", "--seqs", "65"}),
            absl::OutOfRangeError("--seqs is 65, it must be from 1 to 64"));
}

TEST_F(CommandTest, OfARepeatedFlagTheLastValueCounts) {
  const absl::Status parsed = command_.Parse({"-m", "x", "--seqs", "3", "--model", "y", "--seqs=4",
                                              "--eager", "--eager", "--strict", "--no-strict"});
  ASSERT_TRUE(parsed.ok()) << parsed;
  EXPECT_EQ(options_.model, "y");
  EXPECT_EQ(options_.seqs, 4u);
  EXPECT_TRUE(options_.eager);
  EXPECT_FALSE(options_.strict);
}

TEST_F(CommandTest, AnEmptyTextIsAValueOfTextsAlone) {
  for (const char* flag : {"--seqs", "--index", "--batch"}) {
    const absl::Status status = command_.Parse({"-m", "x", flag, ""});
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << flag << ": " << status;
  }
  EXPECT_FALSE(command_.Parse({"-m", "x", "--eager=maybe"}).ok());
  ASSERT_TRUE(command_.Parse({"-m", "", "--stop", ""}).ok());
  EXPECT_EQ(options_.model, "");
  EXPECT_EQ(options_.stops, std::vector<std::string>{""});
}

TEST_F(CommandTest, TheUnknownIsNamed) {
  const auto message = [&](const std::vector<std::string>& arguments) {
    return std::string(command_.Parse(arguments).message());
  };
  EXPECT_EQ(message({"--bogus=3"}), "unknown flag '--bogus'");  // though --model is missing
  EXPECT_EQ(message({"-m", "x", "y"}), "unexpected argument 'y'");
  EXPECT_EQ(message({"-m", "x", "--seqs"}), "--seqs needs a value");
  EXPECT_EQ(message({}), "--model is required");
}

TEST_F(CommandTest, ChecksSeeTheValuesAndAreBadUsage) {
  command_.OnCheck([&] {
    return options_.seqs == 7 ? absl::FailedPreconditionError("not 7") : absl::OkStatus();
  });
  command_.OnRun([] { return absl::InvalidArgumentError("while running"); });
  const char* const bad[] = {"test", "-m", "x", "--seqs", "7"};
  EXPECT_EQ(command_.Main(3, bad), kFailed);  // without --seqs 7
  EXPECT_EQ(command_.Main(5, bad), kBadUsage);
  const char* const out_of_range[] = {"test", "-m", "x", "--seqs", "65"};
  EXPECT_EQ(command_.Main(5, out_of_range), kBadUsage);
}

// Environment and file, below the command line.
class SourcesTest : public CommandTest {
 protected:
  ~SourcesTest() override {
    for (const char* name : {"TANDEM_MODEL", "TANDEM_SEQS", "TANDEM_STRICT", "TANDEM_BATCH"}) {
      unsetenv(name);
    }
  }

  absl::Status ParseWith(const std::string& file, std::vector<std::string> arguments) {
    std::ofstream(path_) << file;
    arguments.insert(arguments.begin(), {"--config", path_});
    return command_.Parse(arguments);
  }

  const std::string path_ = testing::TempDir() + "/flags.toml";
};

TEST_F(SourcesTest, TheFlagWinsThenTheEnvironmentThenTheFile) {
  setenv("TANDEM_SEQS", "5", 1);
  setenv("TANDEM_BATCH", "7,8", 1);
  setenv("TANDEM_STRICT", "", 1);  // as if it were not set
  const std::string file =
      "# comment\nmodel = \"a b.gguf\"  # comment\nseqs = 6\nstrict = false\nbatch = [9]\n"
      "stop = [\"x, y\", \"z\"]\nindex = -3\n";
  absl::Status parsed = ParseWith(file, {"--batch", "1"});
  ASSERT_TRUE(parsed.ok()) << parsed;
  EXPECT_EQ(options_.model, "a b.gguf");
  EXPECT_EQ(options_.seqs, 5u);
  EXPECT_FALSE(options_.strict);
  EXPECT_EQ(options_.batches, std::vector<uint32_t>{1});
  EXPECT_EQ(options_.stops, (std::vector<std::string>{"x, y", "z"}));
  EXPECT_EQ(options_.index, -3);

  parsed = ParseWith(file, {"--seqs", "4"});
  ASSERT_TRUE(parsed.ok()) << parsed;
  EXPECT_EQ(options_.seqs, 4u);
  EXPECT_EQ(options_.batches, (std::vector<uint32_t>{7, 8}));
}

TEST_F(SourcesTest, AFlagMayBeOfTheCommandLineAlone) {
  command_.OnlyOnCommandLine("--strict");
  setenv("TANDEM_STRICT", "false", 1);
  ASSERT_TRUE(command_.Parse({"-m", "x"}).ok());
  EXPECT_TRUE(options_.strict);
  EXPECT_EQ(ParseWith("strict = false", {"-m", "x"}).message(),
            "--config " + path_ + ": there is no flag '--strict' that a file can set");
  ASSERT_TRUE(command_.Parse({"-m", "x", "--no-strict"}).ok());
  EXPECT_FALSE(options_.strict);
}

TEST_F(SourcesTest, ErrorsNameTheSource) {
  setenv("TANDEM_SEQS", "many", 1);
  EXPECT_EQ(command_.Parse({"-m", "x"}).message(),
            "TANDEM_SEQS: --seqs is 'many', it must be a whole number from 1 to 64");
  unsetenv("TANDEM_SEQS");
  const std::string prefix = "--config " + path_ + ": ";
  EXPECT_EQ(ParseWith("seqs = 65", {"-m", "x"}).message(),
            prefix + "--seqs is 65, it must be from 1 to 64");
  EXPECT_EQ(ParseWith("bogus = 1", {"-m", "x"}).message(),
            prefix + "there is no flag '--bogus' that a file can set");
  EXPECT_EQ(ParseWith("[part]\nseqs = 1", {"-m", "x"}).message(),
            prefix + "there is no flag '--seqs' that a file can set in [part]");
  EXPECT_EQ(ParseWith("seqs =", {"-m", "x"}).message(),
            prefix + "--seqs is '', it must be a whole number from 1 to 64");
  EXPECT_EQ(ParseWith("model = my model.gguf", {}).message(),
            prefix +
                "'model' has 2 values, it must have one: a text with blanks or commas needs "
                "quotes");
  EXPECT_EQ(ParseWith("model = \"a#b\"", {}).message(),
            prefix + "'model' has a quote without its end on the line");
  EXPECT_EQ(
      ParseWith("model = \"x\"\nstop = [  # several\n  \"a\",\n  \"b\"\n]\n", {}).message(),
      prefix + "line 2: the list of 'stop' does not end on its line: each setting is one line");
  EXPECT_EQ(
      ParseWith("stop = [\"a\",\n  \"b\"]\n", {"-m", "x"}).message(),
      prefix + "line 1: the list of 'stop' does not end on its line: each setting is one line");
  EXPECT_EQ(ParseWith("# a comment\nmodel = \"x\"\n\nmodel = \"y\"\n", {}).message(),
            prefix + "'model' is set twice: line 2 and line 4");
  EXPECT_EQ(ParseWith("seqs = 1\nindex = 2\nseqs = 3\n", {"-m", "x"}).message(),
            prefix + "'seqs' is set twice: line 1 and line 3");
  EXPECT_TRUE(absl::IsNotFound(command_.Parse({"--config", "/no/such.toml"})));
  EXPECT_TRUE(absl::IsNotFound(command_.Parse({"--config", testing::TempDir()})));
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

TEST(SubcommandTest, AnUnknownOneFailsEvenWithHelp) {
  Command program("test", "", "");
  program.AddCommand("one", "", "").OnRun([] { return absl::OkStatus(); });
  const absl::Status unknown = absl::InvalidArgumentError("unknown command 'two'");
  EXPECT_EQ(program.Parse({"two"}), unknown);
  EXPECT_EQ(program.Parse({"two", "--help"}), unknown);
  EXPECT_EQ(program.Parse({"one", "--bogus"}).message(), "unknown flag '--bogus'");
  EXPECT_TRUE(absl::IsCancelled(program.Parse({"one", "--help"})));
}

TEST(SubcommandTest, ASectionOfTheFileIsForOneCommand) {
  const std::string path = testing::TempDir() + "/sections.toml";
  std::ofstream(path) << "number = 1\nonly-one = 5\n[two]\nnumber = 2\n";
  const auto parse = [&](const std::string& command) {
    uint32_t number = 0, only_one = 0;
    Command program("test", "", "");
    Command& one = program.AddCommand("one", "", "");
    one.Add({number, {.flag = "--number"}});
    one.Add({only_one, {.flag = "--only-one"}});
    program.AddCommand("two", "", "").Add({number, {.flag = "--number"}});
    EXPECT_TRUE(program.Parse({"--config", path, command}).ok());
    return number;
  };
  EXPECT_EQ(parse("one"), 1u);
  EXPECT_EQ(parse("two"), 2u);
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
