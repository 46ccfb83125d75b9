#include <signal.h>

#include <atomic>
#include <memory>
#include <string>

#include "client/commands.h"
#include "common/base/status.h"
#include "common/cli/output.h"
#include "common/hub/hub.h"

namespace tandem::client {
namespace {

struct PullOptions {
  std::string model;
  uint32_t attempts = static_cast<uint32_t>(hub::Settings().attempts);
};

std::atomic<bool> g_stopped{false};

absl::Status Pull(const PullOptions& options) {
  const hub::ModelName name = *hub::ModelName::Parse(options.model);  // was checked
  TANDEM_ASSIGN_OR_RETURN(hub::Settings settings, hub::SettingsFromEnvironment());
  settings.attempts = static_cast<int>(options.attempts);
  // As a container's first process it would otherwise ignore them.
  signal(SIGTERM, [](int) { g_stopped = true; });
  signal(SIGINT, [](int) { g_stopped = true; });
  TANDEM_ASSIGN_OR_RETURN(const std::string path,
                          hub::FetchModel(name, settings, [] { return g_stopped.load(); }));
  return cli::Print(path + "\n");
}

}  // namespace

void AddPullCommand(cli::Command& program) {
  auto options = std::make_shared<PullOptions>();
  cli::Command& command = program.AddCommand(
      "pull", "fetches a GGUF model from a model hub, and prints its path",
      "The files go to the cache of Python's huggingface_hub, which HF_HUB_CACHE or HF_HOME "
      "names;\n"
      "they are checked by SHA-256, and an interrupted fetch continues where it was. HF_TOKEN,\n"
      "HF_ENDPOINT and HF_HUB_OFFLINE=1 mean what they mean there.\n"
      "Examples:\n"
      "  tandem pull hf:OWNER/REPO             # the only model, else the one in Q4_K_M\n"
      "  tandem pull hf:OWNER/REPO:Q8_0\n"
      "  tandem pull hf:OWNER/REPO@COMMIT:Q8_0 # the same files at any time; also a branch or a "
      "tag\n"
      "  tandem_coordinator --model hf:OWNER/REPO:Q8_0   # the same, and serves it");
  command.Add({options->model,
               {.flag = "model",
                .help = "hf:OWNER/REPO[@REVISION][:QUANT], or [:FILE.gguf]",
                .required = true}});
  command.Add({options->attempts,
               {.flag = "--attempts",
                .help = "gives up after so many in a row without progress",
                .least = 1,
                .most = 100}});
  command.OnCheck([options] { return hub::ModelName::Parse(options->model).status(); });
  command.OnRun([options] { return Pull(*options); });
}

}  // namespace tandem::client
