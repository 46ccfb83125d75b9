#include "client/info_command.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>

#include "client/info_json.h"
#include "common/base/status.h"
#include "common/gguf/file.h"
#include "common/model/build_spec.h"
#include "common/model/info.h"

namespace tandem::client {
namespace {

struct InfoOptions {
  std::string model;
  bool json = false;
};

absl::StatusOr<model::ModelInfo> Describe(const std::string& path) {
  TANDEM_ASSIGN_OR_RETURN(const gguf::File file, gguf::File::Open(path));
  TANDEM_ASSIGN_OR_RETURN(const model::ModelSpec spec, model::BuildSpec(file));
  return model::DescribeModel(file, spec);
}

absl::Status Info(const InfoOptions& options) {
  const absl::StatusOr<model::ModelInfo> info = Describe(options.model);
  if (!info.ok()) return Annotate(info.status(), options.model);
  if (options.json) {
    std::cout << ToJson(*info) << '\n';
  } else {
    std::cout << model::FormatInfo(*info);
  }
  return absl::OkStatus();
}

}  // namespace

void AddInfoCommand(CLI::App& app, Action& action) {
  auto options = std::make_shared<InfoOptions>();
  CLI::App* command =
      app.add_subcommand("info", "what is in a GGUF file, and what N ranks would need for it");
  command->add_option("model", options->model, "GGUF file")->required();
  command->add_flag("--json", options->json, "for programs");
  command->footer(
      "Examples:\n"
      "  tandem info models/demo.gguf\n"
      "  tandem info big.gguf --json | jq '.tensor_parallel[] | select(.possible).size'");
  command->callback([options, &action] { action = [options] { return Info(*options); }; });
}

}  // namespace tandem::client
