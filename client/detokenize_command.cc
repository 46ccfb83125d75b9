#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/commands.h"
#include "client/input.h"
#include "client/vocabulary_flag.h"
#include "common/base/status.h"
#include "common/cli/output.h"
#include "common/tokenizer/detokenizer.h"
#include "coordinator/startup/model_file.h"

namespace tandem::client {
namespace {

struct DetokenizeOptions {
  std::string model;
  std::vector<int32_t> ids;
  bool special = false;
  bool lines = false;
};

absl::StatusOr<std::vector<TokenId>> ParseIds(const std::string& text) {
  std::vector<TokenId> ids;
  for (const absl::string_view word :
       absl::StrSplit(text, absl::ByAnyChar(" \t\r\n,"), absl::SkipEmpty())) {
    if (!absl::SimpleAtoi(word, &ids.emplace_back())) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", word.substr(0, 40), "' is not a token id"));
    }
  }
  return ids;
}

absl::Status PrintText(const tokenizer::Tokenizer& tokenizer, const std::vector<TokenId>& ids,
                       const DetokenizeOptions& options) {
  TANDEM_ASSIGN_OR_RETURN(
      const std::string text,
      tokenizer::Decode(tokenizer, ids, {.skip_special = !options.special, .at_start = true}));
  return cli::Print(options.lines ? text + "\n" : text);
}

absl::Status Detokenize(const DetokenizeOptions& options) {
  TANDEM_ASSIGN_OR_RETURN(const auto tokenizer, coordinator::OpenTokenizer(options.model));
  if (!options.ids.empty()) return PrintText(*tokenizer, options.ids, options);
  const auto print = [&](const std::string& text) -> absl::Status {
    TANDEM_ASSIGN_OR_RETURN(const std::vector<TokenId> ids, ParseIds(text));
    return PrintText(*tokenizer, ids, options);
  };
  if (!options.lines) {
    TANDEM_ASSIGN_OR_RETURN(const std::string text, ReadAll("-"));
    return Annotate(print(text), "stdin");
  }
  std::string line;
  for (int number = 1; std::getline(std::cin, line); ++number) {
    TANDEM_RETURN_IF_ERROR(Annotate(print(line), absl::StrCat("line ", number)));
  }
  return absl::OkStatus();
}

}  // namespace

void AddDetokenizeCommand(cli::Command& program) {
  auto options = std::make_shared<DetokenizeOptions>();
  cli::Command& command = program.AddCommand(
      "detokenize", "token ids, as arguments or on stdin, to text on stdout",
      "Stdin is ids between blanks, commas or line ends. Nothing is added to the text, no newline\n"
      "at its end either.\n"
      "Examples:\n"
      "  tandem detokenize --model models/demo.gguf 1 15043 3186\n"
      "  tandem tokenize -m vocab.gguf < a.txt | tandem detokenize -m vocab.gguf | cmp - a.txt");
  command.Add({options->ids,
               {.flag = "ids", .help = "token ids; none: stdin", .least = 0, .most = 2147483647}});
  AddVocabularyFlag(command, options->model);
  command.Add({options->special,
               {.flag = "--special", .help = "control tokens as their names, not as nothing"}});
  command.Add({options->lines,
               {.flag = "--lines", .help = "every line is a separate text, and so is its answer"}});
  command.OnRun([options] { return Detokenize(*options); });
}

}  // namespace tandem::client
