#include "common/config/server_config.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/status.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "common/config/port_checks.h"
#include "common/config/worker_cpus.h"

namespace tandem::config {
namespace {

constexpr char kPageBegin[] =
    "# Configuration\n"
    "\n"
    "Every setting of `tandem_coordinator`, as `common/config` declares it. `tandem bench` takes "
    "the\n"
    "same, but for the limits that it derives from its measurements. A change of a setting marked\n"
    "*reload* makes workers reload the weights; all others keep them.\n"
    "\n"
    "A setting comes from the first of these that has it:\n"
    "\n"
    "1. the flag; of a repeated flag the last value counts, lists take all of them;\n"
    "2. the environment variable, if it is not empty;\n"
    "3. the file of `--config FILE` (TOML or INI): a line `max-num-seqs = 64` is "
    "`--max-num-seqs 64`,\n"
    "   `strict = false` is `--no-strict`, `[1, 4]` a list. A setting is one line, lists too, and "
    "is "
    "there\n"
    "   once. A `#` begins a comment, even in quotes;\n"
    "4. the default.\n"
    "\n"
    "`tandem` and `tandem_worker` do the same with their own flags (`--help` lists them); in a "
    "file\n"
    "of `tandem`, `[generate]` begins the settings of one command, the lines before are for all\n"
    "that have the flag. `--config` itself, positional arguments and the flags of which exactly\n"
    "one must be given (`--prompt`, ...) are only on the command line.\n"
    "\n"
    "This page is generated: `bazel run //tools/docs:configuration_page > "
    "docs/configuration.md`.\n";

// It takes memory and time, so it is loaded only to be used.
absl::Status CheckDraftModel(const ServerConfig& config) {
  const std::string& path = config.worker.model.draft_path;
  const bool is_draft = config.scheduling.speculation == Speculation::kDraft;
  if (is_draft && path.empty()) {
    return absl::InvalidArgumentError("--speculation draft needs --draft-model");
  }
  if (!is_draft && !path.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--draft-model ", path, " needs --speculation draft"));
  }
  if (is_draft && config.worker.model.spec.load_draft_head) {
    return absl::InvalidArgumentError(
        "--load-draft-head: --speculation draft has no use for the model's own head");
  }
  return absl::OkStatus();
}

absl::Status CheckLoraModules(const std::vector<LoraModule>& modules) {
  if (modules.size() > kMaxLoraModules) {
    return absl::InvalidArgumentError(absl::StrCat("--lora-modules has ", modules.size(),
                                                   " adapters, at most ", kMaxLoraModules));
  }
  for (auto one = modules.begin(); one != modules.end(); ++one) {
    const auto same = [&](const LoraModule& other) { return other.name == one->name; };
    if (std::any_of(modules.begin(), one, same)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--lora-modules has the name ", Quoted(one->name), " twice"));
    }
    if (one->name.size() > kMaxLoraNameBytes || ValidUtf8Prefix(one->name) < one->name.size() ||
        std::ranges::any_of(one->name, absl::ascii_iscntrl)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--lora-modules: the name ", Quoted(one->name), " must be UTF-8 of at most ",
                       kMaxLoraNameBytes, " bytes without control characters"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckWorkersGuess(const ServerConfig& config) {
  const Speculation speculation = config.scheduling.speculation;
  if (speculation != Speculation::kDraft && speculation != Speculation::kMtp) {
    return absl::OkStatus();
  }
  if (speculation == Speculation::kMtp && !config.worker.model.spec.load_draft_head) {
    return absl::InvalidArgumentError("--speculation mtp needs --load-draft-head");
  }
  for (const auto& [flag, tokens] :
       {std::pair{"--max-num-batched-tokens", config.worker.limits.max_num_batched_tokens},
        std::pair{"--chunked-prefill-size", config.scheduling.chunked_prefill_size}}) {
    if (tokens != 1) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        flag, " 1: --speculation ", speculation == Speculation::kDraft ? "draft" : "mtp",
        " needs at least 2, a sequence's last token and a guess"));
  }
  return absl::OkStatus();
}

std::string Code(std::string_view text) {
  return text.empty() ? "" : absl::StrCat("`", Sv(text), "`");
}

}  // namespace

bool WorkersShareHost(const ServerConfig& config) {
  const TransportConfig& transport = config.worker.transport;
  const bool memory_between_ranks = config.worker.device.device == Device::kCpu &&
                                    transport.collective_transport == CollectiveTransport::kShm;
  return config.cluster.workers == WorkerSource::kSpawn ||
         transport.step_transport == StepTransport::kShm || memory_between_ranks;
}

void Complete(ServerConfig& config) {
  if (config.scheduling.speculation == Speculation::kMtp) {
    config.worker.model.spec.load_draft_head = true;
  }
}

absl::Status Validate(const ServerConfig& config) {
  ServerConfig copy = config;
  FieldList fields;
  copy.ForEach(fields);
  for (const Field& field : fields.All()) TANDEM_RETURN_IF_ERROR(field.Check());
  const LimitsConfig& limits = config.worker.limits;
  TANDEM_RETURN_IF_ERROR(CheckTokenBudget(limits.max_num_batched_tokens, limits.max_num_seqs));
  if (config.worker.model.spec.max_model_len == 1) {
    return absl::InvalidArgumentError(
        "--max-model-len 1: a prompt token and a generated one need at least 2");
  }
  TANDEM_RETURN_IF_ERROR(CheckDraftModel(config));
  TANDEM_RETURN_IF_ERROR(CheckWorkersGuess(config));
  TANDEM_RETURN_IF_ERROR(CheckLoraModules(config.worker.model.lora_modules));
  TANDEM_RETURN_IF_ERROR(WorkerCpus(config).status());
  return CheckPorts(config);
}

std::string ConfigurationPage() {
  ServerConfig defaults;
  FieldList fields;
  defaults.ForEach(fields);
  std::string page = kPageBegin;
  for (const FieldList::Section& section : fields.sections()) {
    absl::StrAppend(&page, "\n## ", Sv(section.title),
                    "\n\n| flag | variable | default | allowed | |\n"
                    "| --- | --- | --- | --- | --- |\n");
    for (const Field& field : section.fields) {
      absl::StrAppend(
          &page, "| ", Code(absl::StrReplaceAll(Sv(field.meta().flag), {{",", "`, `"}})), " | ",
          Code(field.variable()), " | ", Code(field.Text()), " | ", field.Allowed(), " | ",
          Sv(field.meta().help), field.meta().reload ? " *(reload)*" : "", " |\n");
    }
  }
  return page;
}

}  // namespace tandem::config
