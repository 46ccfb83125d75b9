// A forked child for tests of shared memory between real processes. The child runs `body` and
// leaves with _exit, so that it destroys nothing of the test; it is killed with the test. Use
// before any thread is started.
#ifndef TANDEM_TESTS_COMMON_TRANSPORT_FORK_CHILD_H_
#define TANDEM_TESTS_COMMON_TRANSPORT_FORK_CHILD_H_

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tandem::transport {

class ForkChild {
 public:
  // `body` returns the exit code.
  template <typename Body>
  explicit ForkChild(Body body) : pid_(fork()) {
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    _exit(body());
  }
  // Kills and reaps what was not waited for.
  ~ForkChild() {
    if (pid_ > 0) {
      Signal(SIGKILL);
      Wait();
    }
  }
  ForkChild(const ForkChild&) = delete;
  ForkChild& operator=(const ForkChild&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int signal) const { kill(pid_, signal); }
  // Sends SIGSTOP and returns once the child is stopped.
  void Stop() const {
    Signal(SIGSTOP);
    int status = 0;
    waitpid(pid_, &status, WUNTRACED);
  }
  // The exit code, or -1 when a signal ended it.
  int Wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_;
};

}  // namespace tandem::transport

#endif  // TANDEM_TESTS_COMMON_TRANSPORT_FORK_CHILD_H_
