// ChildProcess: a program that the coordinator started: a worker, the HTTP gateway, or a simulated
// one (tests). Killed and reaped on destruction.
//
// One thread at a time, except Poll, which is thread-safe. A child ends with the thread that
// spawned it.
#ifndef TANDEM_COORDINATOR_PROCESS_CHILD_PROCESS_H_
#define TANDEM_COORDINATOR_PROCESS_CHILD_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"

namespace tandem::coordinator {

class ChildProcess {
 public:
  // Starts `argv[0]` (a path) with the environment of this process, in a process group of its own.
  // One that asks the kernel to end with us ends with this thread: Spawner has one that stays.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Spawn(const std::vector<std::string>& argv);
  virtual ~ChildProcess() = default;

  virtual pid_t pid() const = 0;
  // OK while the process runs; else how it ended, such as "exited with code 1" or "killed by signal
  // 9". Never blocks.
  virtual absl::Status Poll() = 0;
  // Waits for the exit. False when it has not come after `timeout`.
  virtual bool WaitExit(Duration timeout) = 0;
  virtual void Kill(int signal) = 0;
  // Whether it has ended with exit code 0.
  virtual bool Succeeded() { return false; }
  // Whether it runs, but was stopped by a signal.
  virtual bool IsStopped() { return false; }
  // Whether it was killed by SIGKILL, but not here, or was stopped when it was killed here.
  virtual bool EndedFromOutside() { return false; }
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_PROCESS_CHILD_PROCESS_H_
