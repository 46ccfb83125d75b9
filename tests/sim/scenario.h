// Scenario: the parameters of one run, drawn from its seed.
#ifndef TANDEM_TESTS_SIM_SCENARIO_H_
#define TANDEM_TESTS_SIM_SCENARIO_H_

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/config/worker_config.h"
#include "coordinator/engine/engine_config.h"
#include "coordinator/supervisor/supervisor.h"
#include "tests/coordinator/cluster/simulated_model.h"
#include "tests/sim/random.h"

namespace tandem::sim {

struct Scenario {
  uint32_t num_ranks = 1;
  bool external = false;  // workers are not the coordinator's processes
  coordinator::EngineConfig engine;
  coordinator::SimulatedModel model;
  config::WorkerConfig worker;
  Duration load_timeout{};
  int max_restarts = 0;
  Duration restart_window{};
  Duration arrival_gap{};    // between requests, on average
  Duration fault_gap{};      // between faults, likewise
  Duration network_delay{};  // the most of a message
  Duration compute_time{};   // the most of a step
  bool faults_at_start = false;
  bool has_poison = false;  // some prompts have a token that ends the workers that compute it

  // The poison: an id that the model never draws.
  TokenId poison() const { return static_cast<TokenId>(model.vocab_size); }

  static Scenario Draw(Random& random);
};

}  // namespace tandem::sim

#endif  // TANDEM_TESTS_SIM_SCENARIO_H_
