#include "coordinator/process/child_process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"

extern char** environ;

namespace tandem::coordinator {
namespace {

// Milliseconds left for poll(2), rounded up.
int PollMillis(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.Left()).count();
  return static_cast<int>(std::min<int64_t>(left, 1 << 30));
}

absl::Status DescribeExit(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    return absl::UnavailableError(absl::StrCat("killed by signal ", WTERMSIG(wait_status), " (",
                                               strsignal(WTERMSIG(wait_status)), ")"));
  }
  return absl::UnavailableError(absl::StrCat("exited with code ", WEXITSTATUS(wait_status)));
}

class SpawnedProcess : public ChildProcess {
 public:
  SpawnedProcess(pid_t pid, int pidfd) : pid_(pid), pidfd_(pidfd) {}
  ~SpawnedProcess() override;

  pid_t pid() const override { return pid_; }
  absl::Status Poll() override;
  bool WaitExit(Duration timeout) override;
  void Kill(int signal) override;
  bool Succeeded() override;
  bool IsStopped() override;
  bool EndedFromOutside() override;

 private:
  absl::Status PollLocked() TANDEM_REQUIRES(mutex_);

  const pid_t pid_;
  const int pidfd_;  // readable once the process has ended
  Mutex mutex_;
  absl::Status ended_ TANDEM_GUARDED_BY(mutex_);  // not OK once reaped
  bool succeeded_ TANDEM_GUARDED_BY(mutex_) = false;
  bool killed_here_ TANDEM_GUARDED_BY(mutex_) = false;
  bool from_outside_ TANDEM_GUARDED_BY(mutex_) = false;
};

SpawnedProcess::~SpawnedProcess() {
  if (Poll().ok()) {
    Kill(SIGKILL);
    WaitExit(std::chrono::seconds(5));
  }
  if (pidfd_ >= 0) close(pidfd_);
}

absl::Status SpawnedProcess::Poll() {
  MutexLock lock(mutex_);
  return PollLocked();
}

absl::Status SpawnedProcess::PollLocked() {
  int wait_status = 0;
  if (!ended_.ok()) return ended_;
  const pid_t waited = waitpid(pid_, &wait_status, WNOHANG);
  if (waited < 0 && errno == ECHILD) {
    return ended_ = absl::UnavailableError("ended; how was not kept, as SIGCHLD is ignored");
  }
  if (waited != pid_) return ended_;
  const bool was_killed = WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL;
  if (was_killed && !killed_here_) from_outside_ = true;
  succeeded_ = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0;
  return ended_ = DescribeExit(wait_status);
}

bool SpawnedProcess::Succeeded() {
  MutexLock lock(mutex_);
  PollLocked().IgnoreError();  // what matters is succeeded_
  return succeeded_;
}

bool SpawnedProcess::IsStopped() {
  siginfo_t stopped{};
  waitid(P_PID, static_cast<id_t>(pid_), &stopped, WSTOPPED | WNOHANG | WNOWAIT);
  return stopped.si_pid == pid_;
}

bool SpawnedProcess::EndedFromOutside() {
  MutexLock lock(mutex_);
  PollLocked().IgnoreError();  // what matters is from_outside_
  return from_outside_;
}

bool SpawnedProcess::WaitExit(Duration timeout) {
  const Deadline deadline = Deadline::After(timeout);
  while (Poll().ok()) {
    if (deadline.Passed()) return false;
    pollfd waiter{.fd = pidfd_, .events = POLLIN, .revents = 0};
    poll(&waiter, pidfd_ >= 0 ? 1 : 0, pidfd_ >= 0 ? PollMillis(deadline) : 5);
  }
  return true;
}

void SpawnedProcess::Kill(int signal) {
  MutexLock lock(mutex_);
  if (!PollLocked().ok()) return;
  if (IsStopped()) from_outside_ = true;
  killed_here_ = killed_here_ || signal == SIGKILL;
  kill(pid_, signal);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Spawn(
    const std::vector<std::string>& argv) {
  std::vector<char*> args;
  for (const std::string& arg : argv) args.push_back(const_cast<char*>(arg.c_str()));
  args.push_back(nullptr);

  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // It starts with no signal blocked, and in its own process group: the coordinator handles Ctrl-C.
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, args[0], nullptr, &attributes, args.data(), environ);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    return absl::UnavailableError(absl::StrCat("cannot start '", argv[0], "': ", strerror(error)));
  }
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  return std::make_unique<SpawnedProcess>(pid, pidfd);
}

}  // namespace tandem::coordinator
