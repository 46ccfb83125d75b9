// Fleet: all simulated workers of a run: launches them for the coordinator, or, as an operator
// would, for itself (external workers), and picks those to harm.
#ifndef TANDEM_TESTS_SIM_FLEET_H_
#define TANDEM_TESTS_SIM_FLEET_H_

#include <memory>
#include <vector>

#include "coordinator/process/child_process.h"
#include "tests/sim/worker.h"

namespace tandem::sim {

class Fleet {
 public:
  explicit Fleet(const Worker::Host& host) : host_(host) {}

  // Cluster::LaunchFn.
  absl::StatusOr<std::shared_ptr<coordinator::ChildProcess>> Launch(size_t rank);
  // Starts external workers, and from now on others in place of those that end.
  void StartExternal();
  // One more worker than there are ranks.
  void StartImpostor();

  // A worker that is running, or null.
  Worker* AnyRunning();
  bool AnyStopped() const;
  // Whether a worker of the group of `epoch` has ended or does not run.
  bool AnyBroken(uint64_t epoch) const;
  // Those that the coordinator has given a rank.
  size_t num_connected() const;

 private:
  Worker& Start(std::optional<int> rank);
  void Replace();

  const Worker::Host host_;
  std::vector<std::unique_ptr<Worker>> workers_;  // all that there ever were
};

}  // namespace tandem::sim

#endif  // TANDEM_TESTS_SIM_FLEET_H_
