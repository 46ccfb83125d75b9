#include "tests/cluster/engine_driver.h"

#include <random>
#include <string>
#include <utility>

#include "common/base/status.h"
#include "coordinator/startup/model_file.h"

namespace tandem::testing {
namespace {

class Recorder : public coordinator::TokenStream {
 public:
  explicit Recorder(Output& output) : output_(output) {}

  coordinator::Taken OnUpdate(coordinator::StreamUpdate update) override {
    output_.tokens.insert(output_.tokens.end(), update.tokens.begin(), update.tokens.end());
    output_.usage = update.usage;
    output_.status = update.status;
    output_.ended = update.last();
    return {};
  }
  void Flush() override {}

 private:
  Output& output_;
};

}  // namespace

std::vector<TokenId> RandomPrompt(uint32_t seed, size_t length, TokenId vocab) {
  std::mt19937 random(seed);
  std::vector<TokenId> prompt(length);
  for (TokenId& token : prompt) token = static_cast<TokenId>(random() % vocab);
  return prompt;
}

EngineDriver::EngineDriver(coordinator::Workers workers)
    : workers_(std::move(workers)), core_(workers_.MakeCore()) {}

absl::StatusOr<std::unique_ptr<EngineDriver>> EngineDriver::Start(
    const config::ServerConfig& options) {
  TANDEM_ASSIGN_OR_RETURN(const auto model, coordinator::OpenModelFile(options.worker.model));
  TANDEM_ASSIGN_OR_RETURN(auto workers, coordinator::BringUp(options, model, [] { return false; }));
  return std::unique_ptr<EngineDriver>(new EngineDriver(std::move(workers)));
}

Output& EngineDriver::Add(std::vector<TokenId> prompt, const coordinator::Sampling& sampling,
                          bool want_logits, uint32_t adapter) {
  outputs_.push_back(std::make_unique<Output>());
  Output& output = *outputs_.back();
  coordinator::Request request;
  request.id = std::to_string(outputs_.size());
  request.prompt = std::move(prompt);
  request.sampling = sampling;
  request.stream = std::make_shared<Recorder>(output);
  request.want_logits = want_logits;
  request.adapter = adapter;
  if (want_logits) request.logits_sink = &output.logits;
  core_->Add(std::move(request), outputs_.size());
  return output;
}

absl::Status EngineDriver::RunAll() {
  while (!core_->idle()) {
    TANDEM_RETURN_IF_ERROR(core_->Step());
    TANDEM_RETURN_IF_ERROR(core_->CheckIntegrity());
  }
  for (const auto& output : outputs_) {
    if (!output->ended) return absl::InternalError("a request has no end");
  }
  return absl::OkStatus();
}

}  // namespace tandem::testing
