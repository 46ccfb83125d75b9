// WorkerProcess: a worker that the coordinator started itself. Killed and reaped on destruction.
//
// One thread at a time, except Poll, which is thread-safe. The process ends with the thread that
// spawned it.
#ifndef TANDEM_COORDINATOR_CLUSTER_WORKER_PROCESS_H_
#define TANDEM_COORDINATOR_CLUSTER_WORKER_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"

namespace tandem::coordinator {

class WorkerProcess {
 public:
  // Starts `argv[0]` (a path) with the environment of this process. The worker gets our pid by a
  // flag and exits with us. Called on the Spawner's thread: the kernel ties the worker's death to
  // that thread.
  static absl::StatusOr<std::unique_ptr<WorkerProcess>> Spawn(const std::vector<std::string>& argv);
  ~WorkerProcess();

  pid_t pid() const { return pid_; }
  // OK while the process runs; else how it ended, such as "exited with code 1" or "killed by signal
  // 9". Never blocks.
  absl::Status Poll();
  // Waits for the exit. False when the deadline passes first.
  bool WaitExit(Deadline deadline);
  void Kill(int signal);

 private:
  explicit WorkerProcess(pid_t pid, int pidfd) : pid_(pid), pidfd_(pidfd) {}

  const pid_t pid_;
  const int pidfd_;  // readable once the process has ended
  Mutex mutex_;
  absl::Status ended_ TANDEM_GUARDED_BY(mutex_);  // not OK once reaped
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_CLUSTER_WORKER_PROCESS_H_
