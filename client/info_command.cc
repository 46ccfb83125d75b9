#include "client/info_command.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>

#include "client/info_json.h"
#include "common/base/status.h"
#include "common/gguf/file.h"
#include "common/model/build_spec.h"
#include "common/model/info.h"
#include "common/model/kv_cache_type.h"

namespace tandem::client {
namespace {

struct InfoOptions {
  std::string model;
  uint64_t memory_bytes = 0;  // of each rank; 0: not asked
  std::string kv_cache_type = "f16";
  bool json = false;
};

absl::StatusOr<model::ModelInfo> Describe(const InfoOptions& options) {
  TANDEM_ASSIGN_OR_RETURN(const gguf::File file, gguf::File::Open(options.model));
  TANDEM_ASSIGN_OR_RETURN(const model::ModelSpec spec, model::BuildSpec(file));
  model::InfoQuery query;
  TANDEM_ASSIGN_OR_RETURN(query.kv_type, model::ParseKvCacheType(options.kv_cache_type));
  if (options.memory_bytes > 0) query.memory_bytes = options.memory_bytes;
  return model::DescribeModel(file, spec, query);
}

absl::Status Info(const InfoOptions& options) {
  const absl::StatusOr<model::ModelInfo> info = Describe(options);
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
  command->add_option("model", options->model, "GGUF file; of a split model the first one")
      ->required();
  command->add_option("--kv-cache-type", options->kv_cache_type, "f32, f16, bf16 or q8_0")
      ->capture_default_str();
  command
      ->add_option("--memory", options->memory_bytes,
                   "memory of each rank, such as 24GiB: how many tokens fit beside the weights")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/true))
      ->check(CLI::PositiveNumber);
  command->add_flag("--json", options->json, "for programs");
  command->footer(
      "Examples:\n"
      "  tandem info models/demo.gguf\n"
      "  tandem info big-00001-of-00003.gguf --memory 80GiB\n"
      "  tandem info big.gguf --json | jq '.tensor_parallel[] | select(.possible).size'");
  command->callback([options, &action] { action = [options] { return Info(*options); }; });
}

}  // namespace tandem::client
