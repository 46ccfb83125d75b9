// Spawner: a thread that processes are started from.
//
// The kernel ties PR_SET_PDEATHSIG to the thread that started a child, not to its process. This
// thread exists as long as the children, whichever thread requests them.
#ifndef TANDEM_COORDINATOR_PROCESS_SPAWNER_H_
#define TANDEM_COORDINATOR_PROCESS_SPAWNER_H_

#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/queue.h"
#include "coordinator/process/child_process.h"

namespace tandem::coordinator {

// Thread-safe.
class Spawner {
 public:
  Spawner();
  // Ends children that are still running.
  ~Spawner();

  // ChildProcess::Spawn, on the spawner's thread.
  absl::StatusOr<std::unique_ptr<ChildProcess>> Spawn(std::vector<std::string> argv);

 private:
  using Spawned = absl::StatusOr<std::unique_ptr<ChildProcess>>;
  struct Job {
    std::vector<std::string> argv;
    std::promise<Spawned> result;
  };

  void Run();

  BoundedQueue<Job> jobs_;
  std::thread thread_;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_PROCESS_SPAWNER_H_
