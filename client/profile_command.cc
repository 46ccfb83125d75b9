#include <chrono>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "client/bench/measure.h"
#include "client/bench/profile.h"
#include "client/commands.h"
#include "common/base/status.h"
#include "common/cli/output.h"
#include "common/tokenizer/tokenizer.h"
#include "coordinator/simulation/server_profile.h"
#include "coordinator/startup/bring_up.h"
#include "coordinator/startup/model_file.h"

namespace tandem::client {
namespace {

constexpr uint64_t kSeed = 1;  // of the prompts
constexpr auto kShutdownTimeout = std::chrono::seconds(5);

// Those that tandem_load asks a server for.
absl::StatusOr<std::vector<uint32_t>> SpecialIds(const std::string& model) {
  TANDEM_ASSIGN_OR_RETURN(const auto tokenizer, coordinator::OpenTokenizer(model));
  std::set<TokenId> ids(tokenizer->end_of_generation_ids().begin(),
                        tokenizer->end_of_generation_ids().end());
  ids.insert({tokenizer->special_tokens().bos, tokenizer->special_tokens().eos});
  ids.erase(tokenizer::kNoToken);
  return std::vector<uint32_t>(ids.begin(), ids.end());
}

absl::StatusOr<coordinator::ServerProfile> MeasureServer(coordinator::Workers& workers,
                                                         const ProfileOptions& options) {
  const coordinator::EngineConfig served = workers.engine;
  auto profile = coordinator::ServerProfile::Of(served, {});
  profile.device = workers.config.device.device;
  profile.model = workers.config.model.path;
  profile.tensor_parallel_size = static_cast<uint32_t>(workers.size);
  profile.threads_per_worker = static_cast<uint32_t>(workers.config.device.threads);
  profile.request_timeout = options.server.scheduling.request_timeout;
  TANDEM_ASSIGN_OR_RETURN(profile.special_ids, SpecialIds(profile.model));
  TANDEM_RETURN_IF_ERROR(profile.CheckWithoutSteps());

  TANDEM_ASSIGN_OR_RETURN(const ProfileSizes sizes,
                          ProfileSizes::Of(served, workers.usable_model_len(), options));
  workers.engine.kv_cache.enable_prefix_cache = false;
  const std::unique_ptr<coordinator::EngineCore> engine = workers.MakeCore();
  Measure measure(*engine, kSeed, sizes.decode_context);
  TANDEM_ASSIGN_OR_RETURN(profile.steps,
                          ProfileSteps(measure, sizes, options, [](std::string_view what) {
                            std::cerr << "measuring: " << what << std::endl;
                          }));
  return profile;
}

absl::Status Profile(const ProfileOptions& options) {
  TANDEM_ASSIGN_OR_RETURN(const coordinator::ModelFile model,
                          coordinator::OpenModelFile(options.server.worker.model));
  TANDEM_ASSIGN_OR_RETURN(coordinator::Workers workers,
                          coordinator::BringUp(options.server, model, [] { return false; }));
  const absl::StatusOr<coordinator::ServerProfile> profile = MeasureServer(workers, options);
  workers.supervisor->Shutdown(absl::OkStatus(), Deadline::After(kShutdownTimeout));
  TANDEM_RETURN_IF_ERROR(profile.status());
  return cli::Print(coordinator::ToText(*profile));
}

}  // namespace

void AddProfileCommand(cli::Command& program) {
  auto options = std::make_shared<ProfileOptions>();
  options->server.scheduling.speculation = config::Speculation::kOff;
  cli::Command& command = program.AddCommand(
      "profile", "how long a server's steps take, for tandem_load --simulate",
      "Starts the workers of a server with these flags, measures steps of each size, and prints\n"
      "them with the server's settings as resolved: the whole input of a simulation\n"
      "(docs/capacity-planning.md). Its guesses (--speculation) are not part of it.\n"
      "Examples:\n"
      "  tandem profile --model m.gguf --max-num-seqs 32 > server.profile\n"
      "  tandem_load --simulate server.profile --random-input-len 512 --random-output-len 128 "
      "--sweep");
  config::FieldList fields;
  options->ForEach(fields);
  options->server.ForEach(fields);
  command.Add(fields, {std::begin(kNotOfProfile), std::end(kNotOfProfile)});
  command.OnCheck([options] {
    config::Complete(options->server);
    return config::Validate(options->server);
  });
  command.OnRun([options] { return Profile(*options); });
}

}  // namespace tandem::client
