#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/channel.h"
#include "client/commands.h"
#include "client/connection_flags.h"
#include "client/input.h"
#include "client/json_forms.h"
#include "common/base/status.h"
#include "common/cli/output.h"
#include "proto/tandem/v1/generation.grpc.pb.h"

namespace tandem::client {
namespace {

struct ScoreOptions {
  Connection connection;
  std::string prompt;
  std::vector<std::string> continuations;
  std::string adapter;
  Duration timeout = std::chrono::hours(1);
  bool json = false;
};

// One answer per continuation, in their order.
absl::StatusOr<std::vector<v1::ScoreResponse>> Ask(const ScoreOptions& options) {
  TANDEM_ASSIGN_OR_RETURN(const auto channel, MakeChannel(options.connection));
  v1::ScoreRequest request;
  request.set_text(options.prompt);
  request.set_adapter(options.adapter);
  for (const std::string& text : options.continuations) request.add_continuations()->set_text(text);
  grpc::ClientContext context;
  context.set_deadline(DeadlineAfter(options.timeout));
  const auto reader = v1::Generation::NewStub(channel)->Score(&context, request);
  std::vector<v1::ScoreResponse> answers(options.continuations.size());
  for (v1::ScoreResponse response; reader->Read(&response);) {
    const auto index = static_cast<size_t>(response.index());
    if (index < answers.size()) answers[index].MergeFrom(response);
  }
  TANDEM_RETURN_IF_ERROR(FromGrpc(reader->Finish(), options.connection.server));
  return answers;
}

absl::Status Score(const ScoreOptions& options) {
  TANDEM_ASSIGN_OR_RETURN(const auto answers, Ask(options));
  std::string out;
  for (size_t i = 0; i < answers.size(); ++i) {
    if (answers[i].finish_reason() == v1::FINISH_REASON_CANCELLED) {
      return absl::CancelledError("the server is shutting down");
    }
    absl::StrAppend(&out,
                    options.json ? ToJson(answers[i])
                                 : absl::StrFormat("%9.4f %s %s", answers[i].logprob(),
                                                   answers[i].is_greedy() ? "greedy" : "      ",
                                                   options.continuations[i]),
                    "\n");
  }
  return cli::Print(out);
}

absl::Status CheckTexts(const ScoreOptions& options) {
  TANDEM_RETURN_IF_ERROR(CheckUtf8("--prompt", options.prompt));
  TANDEM_RETURN_IF_ERROR(CheckUtf8("--adapter", options.adapter));
  for (const std::string& text : options.continuations) {
    TANDEM_RETURN_IF_ERROR(CheckUtf8("--continuation", text));
  }
  return absl::OkStatus();
}

}  // namespace

void AddScoreCommand(cli::Command& program) {
  auto options = std::make_shared<ScoreOptions>();
  cli::Command& command = program.AddCommand(
      "score", "log-probabilities of given continuations of a prompt",
      "A line for each continuation: the sum over its tokens, `greedy` if temperature 0 would\n"
      "generate it, and its text.\n"
      "Example:\n"
      "  tandem score --prompt 'The capital of France is' --continuation ' Paris' \\\n"
      "      --continuation ' Rome'");
  AddConnectionFlags(command, options->connection);
  command.Add({options->prompt, {.flag = "--prompt", .help = "the text that comes before"}});
  command.Add(
      {options->continuations,
       {.flag = "--continuation", .help = "a text after it, tokenized with it; repeatable"}});
  command.RequireOneOf({"--prompt"});
  command.RequireOneOf({"--continuation"});
  AddAdapterFlag(command, options->adapter);
  command.OnCheck([options] { return CheckTexts(*options); });
  AddTimeoutFlag(command, options->timeout, "for all answers, such as 30s or 5m");
  command.Add({options->json,
               {.flag = "--json",
                .help = "one object per continuation and line: logprob, is_greedy, tokens with\n"
                        "token_id, logprob, rank and is_greedy each, usage"}});
  command.OnRun([options] { return Score(*options); });
}

}  // namespace tandem::client
