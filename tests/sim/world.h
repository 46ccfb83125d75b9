// World: one run of the simulation: the coordinator (engine loop, scheduler, blocks, supervisor,
// cluster, clients of workers, codec) with simulated processes, network, clients and time, in one
// thread, from one RunId. Ends the process at the first violation.
#ifndef TANDEM_TESTS_SIM_WORLD_H_
#define TANDEM_TESTS_SIM_WORLD_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "coordinator/supervisor/supervisor.h"
#include "tests/sim/faults.h"
#include "tests/sim/invariants.h"
#include "tests/sim/run_id.h"

namespace tandem::sim {

// What happened in a run.
struct Report {
  uint64_t steps = 0;
  uint64_t events = 0;
  uint64_t requests = 0;
  uint64_t tokens = 0;
  uint64_t faults = 0;
  uint64_t losses = 0;
  uint64_t preemptions = 0;
  uint64_t cached_tokens = 0;
  uint64_t accepted_drafts = 0;
  uint64_t accepted_guesses = 0;  // of those, guessed by workers
  uint64_t unguessed_steps = 0;   // which skipped the guesser
  uint64_t given_up = 0;          // runs that ended for want of workers
  uint64_t trace = 0;             // equal for equal runs

  void Add(const Report& other);
};

class World {
 public:
  explicit World(const RunId& run);

  // Until the engine has settled its steps and has then been stopped.
  Report Run();

 private:
  // The first epoch; false if faults prevent it.
  bool BringUp();
  void Serve(coordinator::ReadyWorkers ready);
  absl::StatusOr<coordinator::ReadyWorkers> Recover(const absl::Status& loss,
                                                    const std::function<bool()>& cancelled);
  void Observe();
  // SIGTERM: a drain, with a limit or without, or none.
  void BeginEnd();
  void Stop();
  Report MakeReport() const;

  const uint64_t num_steps_;
  Random random_;
  Scenario scenario_;
  EventClock clock_;
  Harm harm_;
  Circumstances circumstances_;
  Collectives collectives_;
  coordinator::WorkerRegistry registry_;
  const Worker::Host host_;
  Fleet fleet_;
  Faults faults_;
  Workload workload_;
  std::unique_ptr<coordinator::Supervisor> supervisor_;
  coordinator::EngineCore* core_ = nullptr;  // the engine's
  std::unique_ptr<coordinator::EngineLoop> engine_;
  std::optional<Invariants> invariants_;
  bool ending_ = false;
};

}  // namespace tandem::sim

#endif  // TANDEM_TESTS_SIM_WORLD_H_
