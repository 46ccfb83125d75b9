// Target over a ServerProfile. Each run begins with a server that has just started.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/tokenizer/tokenizer.h"
#include "coordinator/simulation/server_profile.h"
#include "coordinator/startup/model_file.h"
#include "tests/load/simulated_run.h"
#include "tests/load/target.h"

namespace tandem::load {
namespace {

class SimulatedTarget final : public Target {
 public:
  SimulatedTarget(const LoadOptions& options, coordinator::ServerProfile profile,
                  coordinator::EngineConfig engine)
      : options_(options),
        profile_(std::move(profile)),
        server_{std::move(engine), profile_.steps} {}

  absl::StatusOr<ModelFacts> Model() override {
    return ModelFacts{.name = profile_.model,
                      .vocab_size = server_.engine.vocab_size,
                      .special_ids = {profile_.special_ids.begin(), profile_.special_ids.end()}};
  }
  absl::StatusOr<uint32_t> CountTokens(const std::string& text) override {
    TANDEM_ASSIGN_OR_RETURN(const std::vector<TokenId> ids, Encode(text));
    return static_cast<uint32_t>(ids.size());
  }
  absl::StatusOr<RunRecord> Run(const std::vector<LoadRequest>& requests,
                                const RunSettings& settings) override;
  void Stop() override {
    MutexLock lock(mutex_);
    stopped_ = true;
    if (current_ != nullptr) current_->Stop();
  }

 private:
  // By the tokenizer in the model's file.
  absl::StatusOr<std::vector<TokenId>> Encode(const std::string& text);

  const LoadOptions& options_;
  const coordinator::ServerProfile profile_;
  const SimulatedServer server_;
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;  // null before the first text
  Mutex mutex_;
  SimulatedRun* current_ TANDEM_GUARDED_BY(mutex_) = nullptr;
  bool stopped_ TANDEM_GUARDED_BY(mutex_) = false;
};

absl::StatusOr<std::vector<TokenId>> SimulatedTarget::Encode(const std::string& text) {
  if (tokenizer_ == nullptr) {
    auto opened = coordinator::OpenTokenizer(profile_.model);
    TANDEM_RETURN_IF_ERROR(
        Annotate(opened.status(), "prompts of text need the tokenizer of the model's file"));
    tokenizer_ = *std::move(opened);
  }
  return tokenizer_->Encode(text, {});
}

absl::StatusOr<RunRecord> SimulatedTarget::Run(const std::vector<LoadRequest>& requests,
                                               const RunSettings& settings) {
  std::vector<LoadRequest> encoded = requests;
  for (LoadRequest& request : encoded) {
    if (!request.token_ids.empty()) continue;
    TANDEM_ASSIGN_OR_RETURN(request.token_ids, Encode(request.text));
  }
  RunSettings limited = settings;
  if (const Duration limit = profile_.request_timeout; limit > Duration::zero()) {
    limited.request_timeout = std::min(limited.request_timeout, limit);
  }
  SimulatedRun run(server_, encoded, limited, options_.priority.value_or(0),
                   options_.stats_interval);
  {
    MutexLock lock(mutex_);
    if (stopped_) return absl::CancelledError("interrupted");
    current_ = &run;
  }
  RunRecord record = run.Run();
  MutexLock lock(mutex_);
  current_ = nullptr;
  return record;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Target>> SimulateServer(const LoadOptions& options) {
  TANDEM_ASSIGN_OR_RETURN(coordinator::ServerProfile profile,
                          coordinator::ReadServerProfile(options.simulate, "--simulate"));
  for (const std::string& setting : options.simulate_with) {
    TANDEM_RETURN_IF_ERROR(Annotate(profile.Set(setting), "--simulate-with"));
  }
  auto engine = profile.Engine();
  TANDEM_RETURN_IF_ERROR(Annotate(engine.status(), "--simulate-with"));
  return std::make_unique<SimulatedTarget>(options, std::move(profile), *std::move(engine));
}

}  // namespace tandem::load
