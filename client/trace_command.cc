#include <grpcpp/grpcpp.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/channel.h"
#include "client/commands.h"
#include "client/connection_flags.h"
#include "client/trace/timeline.h"
#include "common/base/status.h"
#include "proto/tandem/v1/trace.grpc.pb.h"

namespace tandem::client {
namespace {

// For the answer of a server that is busy, beyond the recording's time.
constexpr Duration kPatience = std::chrono::seconds(30);
constexpr double kMostSeconds = 60;

struct TraceOptions {
  Connection connection;
  double seconds = 5;
  std::string output = "trace.json";
};

// The file, or standard output for "-".
class Output {
 public:
  explicit Output(const std::string& path) : path_(path) {}
  absl::Status Open() {
    if (path_ != "-") file_.open(path_, std::ios::binary | std::ios::trunc);
    return Check();
  }
  std::ostream& stream() { return path_ == "-" ? std::cout : file_; }
  // Of everything until now.
  absl::Status Check() {
    if (stream().flush()) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat(path_ == "-" ? "stdout" : path_, ": ", std::strerror(errno)));
  }

 private:
  const std::string path_;
  std::ofstream file_;
};

// Opens `output` once the recording has begun.
absl::Status Record(const TraceOptions& options, Output& output, Timeline& timeline) {
  TANDEM_ASSIGN_OR_RETURN(const auto channel, MakeChannel(options.connection));
  grpc::ClientContext context;
  const auto length =
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(options.seconds));
  context.set_deadline(DeadlineAfter(length + kPatience));
  v1::TraceRequest request;
  request.set_seconds(options.seconds);
  const auto reader = v1::Tracing::NewStub(channel)->Trace(&context, request);
  for (v1::TraceResponse response; reader->Read(&response);) {
    if (response.has_start()) {
      if (absl::Status opened = output.Open(); !opened.ok()) {
        context.TryCancel();
        (void)reader->Finish();
        return opened;
      }
      std::cerr << absl::StrCat("recording for ", options.seconds, " s\n");
    }
    timeline.Add(response);
  }
  return FromGrpc(reader->Finish(), options.connection.server);
}

std::string Summary(const Timeline& timeline, const std::string& output) {
  std::string text = absl::StrCat(output, ": ", timeline.num_steps(), " steps, ",
                                  timeline.num_requests(), " requests");
  if (timeline.num_dropped() > 0) {
    absl::StrAppend(&text, "; ", timeline.num_dropped(),
                    " events were dropped: they came faster than they were read, or were too many");
  }
  return absl::StrCat(text, "\n");
}

absl::Status Trace(const TraceOptions& options) {
  Output output(options.output);
  Timeline timeline;
  absl::Status recorded = Record(options, output, timeline);
  // What was recorded until an error may tell its cause.
  if (!timeline.has_start()) return recorded;
  timeline.Draw(output.stream());
  TANDEM_RETURN_IF_ERROR(output.Check());
  std::cerr << Summary(timeline, options.output);
  return recorded;
}

}  // namespace

void AddTraceCommand(cli::Command& program) {
  auto options = std::make_shared<TraceOptions>();
  cli::Command& command = program.AddCommand(
      "trace", "records what a server does, step by step, as a file for https://ui.perfetto.dev",
      "The file has the coordinator's steps and their parts, each rank's, and the requests with "
      "their ids;\nnothing of prompts and answers. chrome://tracing opens it too. A server makes "
      "one recording at a time.\nWhere the server asks for tokens, this needs the scope admin.\n\n"
      "Examples:\n"
      "  tandem trace --server 127.0.0.1:50051 --seconds 5\n"
      "  tandem trace --seconds 1 --output - | gzip > trace.json.gz");
  AddConnectionFlags(command, options->connection);
  command.Add({options->seconds,
               {.flag = "--seconds", .help = "to record", .least = 0.01, .most = kMostSeconds}});
  command.Add({options->output, {.flag = "--output,-o", .help = "the file; -: standard output"}});
  command.OnRun([options] { return Trace(*options); });
}

}  // namespace tandem::client
