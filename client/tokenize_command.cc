#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/commands.h"
#include "common/base/status.h"
#include "common/gguf/file.h"
#include "common/tokenizer/gguf_vocabulary.h"
#include "common/tokenizer/tokenizer.h"

namespace tandem::client {
namespace {

struct TokenizeOptions {
  std::string model;
  bool no_special = false;
  bool parse_special = false;
  bool lines = false;
};

absl::StatusOr<std::unique_ptr<tokenizer::Tokenizer>> OpenTokenizer(const std::string& path) {
  TANDEM_ASSIGN_OR_RETURN(const gguf::File file, gguf::File::Open(path));
  return tokenizer::MakeTokenizerFromGguf(file.metadata());
}

absl::Status PrintIds(const tokenizer::Tokenizer& tokenizer, const std::string& text,
                      const tokenizer::EncodeOptions& encode) {
  TANDEM_ASSIGN_OR_RETURN(const std::vector<TokenId> ids, tokenizer.Encode(text, encode));
  std::cout << absl::StrJoin(ids, " ") << '\n';
  return absl::OkStatus();
}

absl::Status Tokenize(const TokenizeOptions& options) {
  const auto tokenizer = OpenTokenizer(options.model);
  if (!tokenizer.ok()) return Annotate(tokenizer.status(), options.model);
  const tokenizer::EncodeOptions encode{.add_special = !options.no_special,
                                        .parse_special = options.parse_special};
  if (!options.lines) {
    const std::string text((std::istreambuf_iterator<char>(std::cin)), {});
    return PrintIds(**tokenizer, text, encode);
  }
  std::string line;
  for (int number = 1; std::getline(std::cin, line); ++number) {
    const absl::Status status = PrintIds(**tokenizer, line, encode);
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
                         "  tandem tokenize --model vocab.gguf --no-special --lines < words.txt");
  command.Add({options->model,
               {.flag = "--model,-m",
                .help = "GGUF file; a vocabulary alone is enough",
                .required = true}});
  command.Add(
      {options->no_special, {.flag = "--no-special", .help = "no BOS or EOS around the text"}});
  command.Add(
      {options->parse_special,
       {.flag = "--parse-special", .help = "control tokens written in the text are those tokens"}});
  command.Add({options->lines, {.flag = "--lines", .help = "every line is a separate text"}});
  command.OnRun([options] { return Tokenize(*options); });
}

}  // namespace tandem::client
