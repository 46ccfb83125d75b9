// EngineDriver: the engine over real worker processes, stepped by the test itself: requests in,
// tokens and logits out.
#ifndef TANDEM_TESTS_CLUSTER_ENGINE_DRIVER_H_
#define TANDEM_TESTS_CLUSTER_ENGINE_DRIVER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/engine/engine_core.h"
#include "coordinator/startup/bring_up.h"

namespace tandem::testing {

struct Output {
  std::vector<TokenId> tokens;
  std::vector<std::vector<float>> logits;  // of each sampled row, when asked for
  absl::Status status;
  coordinator::Usage usage;
  bool ended = false;
};

constexpr TokenId kGoldenVocab = 323;  // of tests/golden/quant/models

// `length` token ids below `vocab`, the same for a seed on every machine.
std::vector<TokenId> RandomPrompt(uint32_t seed, size_t length, TokenId vocab = kGoldenVocab);

class EngineDriver {
 public:
  static absl::StatusOr<std::unique_ptr<EngineDriver>> Start(const config::ServerConfig& options);

  // Adds a request; its output grows as steps run. The output lives as long as the driver.
  Output& Add(std::vector<TokenId> prompt, const coordinator::Sampling& sampling,
              bool want_logits = false, uint32_t adapter = 0);
  // Steps until every request has ended, checking the engine's integrity after each step.
  absl::Status RunAll();

  coordinator::EngineStats Stats() const { return core_->Stats(); }

 private:
  explicit EngineDriver(coordinator::Workers workers);

  coordinator::Workers workers_;
  std::unique_ptr<coordinator::EngineCore> core_;
  std::vector<std::unique_ptr<Output>> outputs_;
};

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_CLUSTER_ENGINE_DRIVER_H_
