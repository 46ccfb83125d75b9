// MakeEngineConfig: the engine's parameters, of the settings, the model and what the workers agreed
// on. Pure functions.
#ifndef TANDEM_COORDINATOR_STARTUP_MAKE_ENGINE_CONFIG_H_
#define TANDEM_COORDINATOR_STARTUP_MAKE_ENGINE_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/config/scheduling_config.h"
#include "common/config/worker_config.h"
#include "common/model/spec.h"
#include "coordinator/engine/engine_config.h"

namespace tandem::coordinator {

// `num_blocks`: per KV group of `spec`. REQUIRES: `worker` is resolved.
EngineConfig MakeEngineConfig(const config::WorkerConfig& worker,
                              const config::SchedulingConfig& scheduling,
                              const model::ModelSpec& spec, Epoch epoch,
                              const std::vector<uint32_t>& num_blocks);

// Why there are no guesses although --speculation asks for some, for the operator; empty: there
// are, or nobody has asked.
std::string WhyNoDrafts(const config::WorkerConfig& worker,
                        const config::SchedulingConfig& scheduling, const model::ModelSpec& spec);

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_STARTUP_MAKE_ENGINE_CONFIG_H_
