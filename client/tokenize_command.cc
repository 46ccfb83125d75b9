#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/commands.h"
#include "client/input.h"
#include "client/vocabulary_flag.h"
#include "common/base/status.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "common/cli/output.h"
#include "common/tokenizer/tokenizer.h"
#include "coordinator/startup/model_file.h"

namespace tandem::client {
namespace {

struct TokenizeOptions {
  std::string model;
  bool no_special = false;
  bool parse_special = false;
  bool lines = false;
  bool pieces = false;
};

// A token's bytes in quotes on one line; a part of a character in hexadecimal.
std::string PieceText(std::string_view bytes) {
  const bool valid = ValidUtf8Prefix(bytes) == bytes.size();
  return absl::StrCat(
      "\"", valid ? absl::Utf8SafeCHexEscape(Sv(bytes)) : absl::CHexEscape(Sv(bytes)), "\"");
}

absl::Status PrintIds(const tokenizer::Tokenizer& tokenizer, std::string_view text,
                      const TokenizeOptions& options) {
  const tokenizer::EncodeOptions encode{.add_special = !options.no_special,
                                        .parse_special = options.parse_special};
  TANDEM_ASSIGN_OR_RETURN(const std::vector<TokenId> ids, tokenizer.Encode(text, encode));
  if (!options.pieces) return cli::Print(absl::StrJoin(ids, " ") + "\n");
  std::string out;
  for (const TokenId id : ids) {
    TANDEM_ASSIGN_OR_RETURN(const std::string_view bytes, tokenizer.TokenBytes(id));
    absl::StrAppend(&out, id, "\t", PieceText(bytes), "\n");
  }
  return cli::Print(options.lines ? out + "\n" : out);
}

absl::Status Tokenize(const TokenizeOptions& options) {
  TANDEM_ASSIGN_OR_RETURN(const auto tokenizer, coordinator::OpenTokenizer(options.model));
  if (!options.lines) {
    TANDEM_ASSIGN_OR_RETURN(const std::string text, ReadAll("-"));
    return Annotate(PrintIds(*tokenizer, text, options), "stdin");
  }
  std::string line;
  for (int number = 1; std::getline(std::cin, line); ++number) {
    const absl::Status status = PrintIds(*tokenizer, line, options);
    if (!status.ok()) return Annotate(status, absl::StrCat("line ", number));
  }
  return absl::OkStatus();
}

}  // namespace

void AddTokenizeCommand(cli::Command& program) {
  auto options = std::make_shared<TokenizeOptions>();
  cli::Command& command =
      program.AddCommand("tokenize", "stdin to token ids on stdout, separated by spaces",
                         "Examples:\n"
                         "  printf 'Hello world' | tandem tokenize --model models/demo.gguf\n"
                         "  printf 'Hello world' | tandem tokenize -m models/demo.gguf --pieces\n"
                         "  tandem tokenize --model vocab.gguf --no-special --lines < words.txt");
  AddVocabularyFlag(command, options->model);
  command.Add(
      {options->no_special, {.flag = "--no-special", .help = "no BOS or EOS around the text"}});
  command.Add(
      {options->parse_special,
       {.flag = "--parse-special", .help = "control tokens written in the text are those tokens"}});
  command.Add({options->lines, {.flag = "--lines", .help = "every line is a separate text"}});
  command.Add({options->pieces,
               {.flag = "--pieces",
                .help = "one token per line: id, tab, its text in quotes; with --lines an empty\n"
                        "line after each text"}});
  command.OnRun([options] { return Tokenize(*options); });
}

}  // namespace tandem::client
