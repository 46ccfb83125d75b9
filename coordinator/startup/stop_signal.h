// StopSignal: waits for SIGTERM, SIGINT or SIGHUP. A second SIGTERM or SIGINT ends the process at
// once, with 128 + its number. One per process, made on the main thread before other threads.
#ifndef TANDEM_COORDINATOR_STARTUP_STOP_SIGNAL_H_
#define TANDEM_COORDINATOR_STARTUP_STOP_SIGNAL_H_

#include <string>

#include "common/base/clock.h"

namespace tandem::coordinator {

class StopSignal {
 public:
  // Takes over these signals, ignores SIGPIPE, and resets SIGCHLD.
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // Simulates a signal. May be called from any thread and from signal handlers.
  void Raise();
  bool raised() const;
  // Waits until a signal arrives or Raise is called.
  void Wait();
  // The same until a deadline; whether one of them came.
  bool Wait(Deadline deadline);
  // The name of the first signal; empty without one.
  std::string name() const;

 private:
  int read_fd_ = -1;
  int write_fd_ = -1;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_STARTUP_STOP_SIGNAL_H_
