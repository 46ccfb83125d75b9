#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/answer_printer.h"
#include "client/channel.h"
#include "client/commands.h"
#include "client/connection_flags.h"
#include "client/generation_run.h"
#include "client/input.h"
#include "client/prompt_file.h"
#include "client/sampling_flags.h"
#include "common/base/clock.h"
#include "common/base/status.h"

namespace tandem::client {
namespace {

struct GenerateOptions {
  Connection connection;
  std::optional<std::string> prompt;
  std::string prompt_file;
  std::vector<int32_t> prompt_token_ids;
  std::string prompts_file;
  SamplingFlags sampling;
  Duration timeout = std::chrono::hours(1);
  bool json = false;
  bool usage = false;
};

absl::StatusOr<std::vector<v1::GenerateRequest>> MakeRequests(const GenerateOptions& options) {
  v1::GenerateRequest request = MakeRequest(options.sampling);
  if (options.prompts_file == "-") {
    auto requests = ReadPrompts(std::cin, request);
    if (!requests.ok()) return Annotate(requests.status(), "stdin");
    return requests;
  }
  if (!options.prompts_file.empty()) {
    std::ifstream file(options.prompts_file);
    if (!file) {
      return absl::NotFoundError(absl::StrCat(options.prompts_file, ": cannot be opened"));
    }
    auto requests = ReadPrompts(file, request);
    if (!requests.ok()) return Annotate(requests.status(), options.prompts_file);
    return requests;
  }
  const std::string path = options.prompt == "-" ? "-" : options.prompt_file;
  if (!path.empty()) {
    TANDEM_ASSIGN_OR_RETURN(*request.mutable_text(), ReadAll(path));
    TANDEM_RETURN_IF_ERROR(CheckUtf8(InputName(path), request.text()));
  } else if (options.prompt.has_value()) {
    request.set_text(*options.prompt);
  } else {
    request.mutable_token_ids()->mutable_ids()->Add(options.prompt_token_ids.begin(),
                                                    options.prompt_token_ids.end());
  }
  return std::vector<v1::GenerateRequest>{request};
}

// To stderr: stdout may be piped.
void PrintUsage(int64_t tokens, int64_t micros) {
  const double seconds = static_cast<double>(micros) / 1e6;
  std::cerr << absl::StrFormat("%d tokens in %.2f s (%.0f tokens/s)\n", tokens, seconds,
                               static_cast<double>(tokens) / seconds);
}

absl::Status Generate(const GenerateOptions& options) {
  TANDEM_ASSIGN_OR_RETURN(const auto requests, MakeRequests(options));
  TANDEM_ASSIGN_OR_RETURN(const auto channel, MakeChannel(options.connection));
  std::vector<int32_t> num_choices;
  for (const v1::GenerateRequest& request : requests) {
    num_choices.push_back(std::max(request.sampling().n(), 1));
  }
  AnswerPrinter printer(std::cout, options.json ? AnswerFormat::kJson : AnswerFormat::kText,
                        num_choices);
  GenerationRun run(channel, options.connection.server, options.timeout);
  const int64_t begin_us = NowMicros();
  run.Run(requests, printer);
  if (options.usage) PrintUsage(printer.CompletionTokens(), NowMicros() - begin_us);
  return printer.Result();
}

}  // namespace

void AddGenerateCommand(cli::Command& program) {
  auto options = std::make_shared<GenerateOptions>();
  cli::Command& command = program.AddCommand(
      "generate", "continue one prompt or many",
      "Examples:\n"
      "  tandem generate --prompt 'Once upon a time' --max-tokens 64\n"
      "  tandem generate --prompt 'Q: 1 + 1? A:' --temperature 0 --stop '.' --stop 'Q:' --json\n"
      "  tandem generate --prompt-token-ids 1,15043 --max-tokens 8 --ignore-eos\n"
      "  tandem generate --prompt-file article.txt --stop-token-id 13 --max-tokens 200\n"
      "  echo '{\"prompt\": \"Hello\", \"seed\": 7, \"stop\": [\"!\"]}' |\n"
      "      tandem generate --prompts-file - --max-tokens 16 --json");
  AddConnectionFlags(command, options->connection);
  command.Add({options->prompt,
               {.flag = "--prompt", .help = "the text to continue; -: all of stdin as it is"}});
  command.Add({options->prompt_file,
               {.flag = "--prompt-file", .help = "file with the text to continue; -: stdin"}});
  command.Add({options->prompt_token_ids,
               {.flag = "--prompt-token-ids", .help = "the same as ids: 1,2,3"}});
  command.Add({options->prompts_file,
               {.flag = "--prompts-file",
                .help = "JSON lines, each with `prompt` or `prompt_token_ids` and any sampling\n"
                        "field, which overrides the flag; -: stdin"}});
  command.RequireOneOf({"--prompt", "--prompt-file", "--prompt-token-ids", "--prompts-file"});
  AddSamplingFlags(command, options->sampling);
  command.OnCheck([options] { return CheckUtf8("--prompt", options->prompt.value_or("")); });
  AddTimeoutFlag(command, options->timeout, "for each answer, such as 30s or 5m");
  command.Add(
      {options->json,
       {.flag = "--json",
        .help = "one object per answer and line, in input order: index (--n), text, token_ids,\n"
                "finish_reason, matched_stop if a stop string or id ended it, usage;\n"
                "error if it failed; logprobs and prompt_logprobs if requested"}});
  command.Add({options->usage,
               {.flag = "--usage", .help = "print the number of tokens and the rate to stderr"}});
  command.OnRun([options] { return Generate(*options); });
}

}  // namespace tandem::client
