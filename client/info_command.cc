#include <memory>
#include <optional>
#include <string>

#include "client/commands.h"
#include "client/json_forms.h"
#include "common/base/status.h"
#include "common/cli/output.h"
#include "common/config/cache_config.h"
#include "common/gguf/file.h"
#include "common/model/info.h"
#include "coordinator/startup/model_file.h"

namespace tandem::client {
namespace {

struct InfoOptions {
  std::string model;
  std::optional<config::ByteSize> memory;  // of each rank
  tensor::Type kv_cache_type = config::CacheConfig().kv_cache_type;
  bool load_draft_head = false;
  bool json = false;
};

absl::StatusOr<model::ModelInfo> Describe(const InfoOptions& options) {
  TANDEM_ASSIGN_OR_RETURN(const gguf::File file, gguf::File::Open(options.model));
  const auto served = coordinator::ReadServedModel(
      file, {.path = options.model, .spec = {.load_draft_head = options.load_draft_head}});
  if (!served.ok()) return Annotate(served.status(), "cannot be served");
  model::InfoQuery query;
  query.kv_type = options.kv_cache_type;
  if (options.memory.has_value()) query.memory_bytes = options.memory->bytes;
  return model::DescribeModel(file, served->file.spec, query);
}

absl::Status Info(const InfoOptions& options) {
  const absl::StatusOr<model::ModelInfo> info = Describe(options);
  if (!info.ok()) return Annotate(info.status(), options.model);
  return cli::Print(options.json ? ToJson(*info) + "\n" : model::FormatInfo(*info));
}

}  // namespace

void AddInfoCommand(cli::Command& program) {
  auto options = std::make_shared<InfoOptions>();
  cli::Command& command = program.AddCommand(
      "info", "what is in a GGUF file, and what N ranks would need for it",
      "Examples:\n"
      "  tandem info models/demo.gguf\n"
      "  tandem info big-00001-of-00003.gguf --memory 80GiB\n"
      "  tandem info big.gguf --json | jq '.tensor_parallel[] | select(.possible).size'");
  command.Add(
      {options->model,
       {.flag = "model", .help = "GGUF file; of a split model the first one", .required = true}});
  command.Add(
      {options->kv_cache_type, {.flag = "--kv-cache-type", .help = "element type of K and V"}});
  command.Add({options->memory,
               {.flag = "--memory",
                .help = "memory of each rank, such as 24GiB: how many tokens fit beside the "
                        "weights",
                .least = 1,
                .most = 1ull << 60}});
  command.Add({options->load_draft_head,
               {.flag = "--load-draft-head", .help = "count the file's draft head"}});
  command.Add({options->json, {.flag = "--json", .help = "for programs"}});
  command.OnRun([options] { return Info(*options); });
}

}  // namespace tandem::client
