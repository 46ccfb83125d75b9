// Spawner: the thread that worker processes are started from.
//
// The kernel ties PR_SET_PDEATHSIG to the thread that started a child, not to its process. This
// thread exists as long as the workers, whichever thread requests them.
#ifndef TANDEM_COORDINATOR_CLUSTER_SPAWNER_H_
#define TANDEM_COORDINATOR_CLUSTER_SPAWNER_H_

#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/queue.h"
#include "coordinator/cluster/worker_process.h"

namespace tandem::coordinator {

// Thread-safe.
class Spawner {
 public:
  Spawner();
  // Ends workers that are still running.
  ~Spawner();

  // WorkerProcess::Spawn, on the spawner's thread.
  absl::StatusOr<std::unique_ptr<WorkerProcess>> Spawn(std::vector<std::string> argv);

 private:
  using Spawned = absl::StatusOr<std::unique_ptr<WorkerProcess>>;
  struct Job {
    std::vector<std::string> argv;
    std::promise<Spawned> result;
  };

  void Run();

  BoundedQueue<Job> jobs_;
  std::thread thread_;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_CLUSTER_SPAWNER_H_
