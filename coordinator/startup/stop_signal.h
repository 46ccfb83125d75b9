// StopSignal: waits for SIGTERM and SIGINT. One per process, made on the main thread before other
// threads.
#ifndef TANDEM_COORDINATOR_STARTUP_STOP_SIGNAL_H_
#define TANDEM_COORDINATOR_STARTUP_STOP_SIGNAL_H_

namespace tandem::coordinator {

class StopSignal {
 public:
  // Takes over both signals, and ignores SIGPIPE.
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // Simulates a signal. May be called from any thread and from signal handlers.
  void Raise();
  bool raised() const;
  // Waits until a signal arrives or Raise is called.
  void Wait();

 private:
  int read_fd_ = -1;
  int write_fd_ = -1;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_STARTUP_STOP_SIGNAL_H_
