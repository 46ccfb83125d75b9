#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
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

constexpr double kMostDimensions = 1 << 20;

struct EmbedOptions {
  Connection connection;
  std::vector<std::string> inputs;
  std::string pooling;
  std::string adapter;
  std::optional<int32_t> dimensions;
  bool no_normalize = false;
  Duration timeout = std::chrono::hours(1);
};

absl::StatusOr<v1::Pooling> PoolingOf(const std::string& name) {
  if (name.empty()) return v1::POOLING_UNSPECIFIED;
  if (name == "mean") return v1::POOLING_MEAN;
  if (name == "cls") return v1::POOLING_CLS;
  if (name == "last") return v1::POOLING_LAST;
  return absl::InvalidArgumentError(
      absl::StrCat("--pooling must be mean, cls or last, is '", name.substr(0, 40), "'"));
}

// One answer per input, in their order.
absl::StatusOr<std::vector<v1::EmbedResponse>> Ask(const EmbedOptions& options) {
  v1::EmbedRequest request;
  TANDEM_ASSIGN_OR_RETURN(const v1::Pooling pooling, PoolingOf(options.pooling));
  request.set_pooling(pooling);
  request.set_adapter(options.adapter);
  request.set_normalize(!options.no_normalize);
  if (options.dimensions.has_value()) request.set_dimensions(*options.dimensions);
  for (const std::string& text : options.inputs) request.add_inputs()->set_text(text);
  TANDEM_ASSIGN_OR_RETURN(const auto channel, MakeChannel(options.connection));
  grpc::ClientContext context;
  context.set_deadline(DeadlineAfter(options.timeout));
  const auto reader = v1::Generation::NewStub(channel)->Embed(&context, request);
  std::vector<v1::EmbedResponse> answers(options.inputs.size());
  for (v1::EmbedResponse response; reader->Read(&response);) {
    const auto index = static_cast<size_t>(response.index());
    if (index < answers.size()) answers[index] = response;
  }
  TANDEM_RETURN_IF_ERROR(FromGrpc(reader->Finish(), options.connection.server));
  return answers;
}

absl::Status Embed(const EmbedOptions& options) {
  TANDEM_ASSIGN_OR_RETURN(const auto answers, Ask(options));
  std::string out;
  for (const v1::EmbedResponse& answer : answers) {
    if (answer.finish_reason() == v1::FINISH_REASON_CANCELLED) {
      return absl::CancelledError("the server is shutting down");
    }
    absl::StrAppend(&out, ToJson(answer), "\n");
  }
  return cli::Print(out);
}

absl::Status CheckOptions(const EmbedOptions& options) {
  for (const std::string& text : options.inputs) {
    TANDEM_RETURN_IF_ERROR(CheckUtf8("--input", text));
  }
  TANDEM_RETURN_IF_ERROR(CheckUtf8("--adapter", options.adapter));
  return PoolingOf(options.pooling).status();
}

}  // namespace

void AddEmbedCommand(cli::Command& program) {
  auto options = std::make_shared<EmbedOptions>();
  cli::Command& command = program.AddCommand(
      "embed", "embeddings of texts, as JSON",
      "One object per input and line, in their order: embedding, usage.\n"
      "Example:\n"
      "  tandem embed --input 'a cat' --input 'a dog' --pooling mean --dimensions 256");
  AddConnectionFlags(command, options->connection);
  command.Add({options->inputs,
               {.flag = "--input", .help = "a text to embed; may be repeated, at most 128 times"}});
  command.RequireOneOf({"--input"});
  command.Add({options->pooling,
               {.flag = "--pooling",
                .help = "mean, cls or last token; not given: as the model file says, else last"}});
  command.Add({options->dimensions,
               {.flag = "--dimensions",
                .help = "only the first of the values",
                .least = 1,
                .most = kMostDimensions}});
  command.Add({options->no_normalize,
               {.flag = "--no-normalize", .help = "vectors as they are, not of length 1"}});
  AddAdapterFlag(command, options->adapter);
  AddTimeoutFlag(command, options->timeout, "for all answers, such as 30s or 5m");
  command.OnCheck([options] { return CheckOptions(*options); });
  command.OnRun([options] { return Embed(*options); });
}

}  // namespace tandem::client
