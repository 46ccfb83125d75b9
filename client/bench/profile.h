// The measurements of `tandem profile`: how long steps take, by what is in them.
#ifndef TANDEM_CLIENT_BENCH_PROFILE_H_
#define TANDEM_CLIENT_BENCH_PROFILE_H_

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "client/bench/measure.h"
#include "common/config/server_config.h"
#include "coordinator/engine/engine_config.h"
#include "coordinator/simulation/step_costs.h"

namespace tandem::client {

struct ProfileOptions {
  config::ServerConfig server;
  uint32_t context = 4096;
  uint32_t decode = 32;
  uint32_t repetitions = 3;

  void ForEach(config::FieldList& visit);
};

// Settings that a profile does not depend on, and those of guesses, which it does not have.
inline constexpr std::string_view kNotOfProfile[] = {
    "--lora-modules",    "--draft-model", "--speculation",   "--max-draft-tokens",
    "--load-draft-head", "--listen",      "--http-listen",   "--metrics-listen",
    "--tls-cert",        "--tls-key",     "--tls-client-ca", "--tokens",
    "--insecure"};

// What is measured of a server: 1, 2, 4, ... up to what fits into a step and into its KV cache.
struct ProfileSizes {
  std::vector<uint32_t> prefill;  // tokens of a prompt
  std::vector<uint32_t> decode;   // sequences
  uint32_t decode_context = 1;    // tokens of their prompts
  uint32_t long_context = 1;      // tokens of a prompt: of whole steps, if it has several
  uint32_t several_prompts = 1;   // of one step, if such a prompt has no more than one

  // At most options.context tokens, with options.decode more. INVALID_ARGUMENT if the server has no
  // room for them at all.
  static absl::StatusOr<ProfileSizes> Of(const coordinator::EngineConfig& engine,
                                         uint32_t usable_model_len, const ProfileOptions& options);
};

// What is being measured, for people.
using ProgressFn = std::function<void(std::string_view)>;

// `measure` measures decodes after prompts of sizes.decode_context tokens.
absl::StatusOr<coordinator::StepMeasurements> ProfileSteps(Measure& measure,
                                                           const ProfileSizes& sizes,
                                                           const ProfileOptions& options,
                                                           const ProgressFn& progress);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_BENCH_PROFILE_H_
