// Program: one of our programs as a real process: its output as it comes, signals, its end. Killed
// when the test drops it.
#ifndef TANDEM_TESTS_CLUSTER_PROGRAM_H_
#define TANDEM_TESTS_CLUSTER_PROGRAM_H_

#include <sys/types.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/base/clock.h"

namespace tandem::testing {

class Program {
 public:
  // `argv[0]` is a path; `input` goes to its stdin.
  static std::unique_ptr<Program> Start(const std::vector<std::string>& argv,
                                        const std::string& input = "");
  ~Program();

  pid_t pid() const { return pid_; }
  void Signal(int signal);

  // Waits until `text` appears in stdout (or in stderr). False when the deadline passes or the
  // program ends without it.
  bool WaitStdout(const std::string& text, Deadline deadline);
  bool WaitStderr(const std::string& text, Deadline deadline);
  // The exit code, or 128 + the signal. Nothing when the deadline passes. Afterwards Stdout() and
  // Stderr() hold all that the program wrote.
  std::optional<int> WaitExit(Deadline deadline);
  // What has come so far.
  std::string Stdout();
  std::string Stderr();

 private:
  struct Stream {
    int fd;  // does not block; closed by its reader
    std::string text{};
    bool open = true;
  };
  Program(pid_t pid, int out_fd, int err_fd);
  void Read(Stream& stream);
  // mutex_ is held.
  void TakeWhatIsThere(Stream& stream);
  bool WaitText(const Stream& stream, const std::string& text, Deadline deadline);

  const pid_t pid_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Stream stdout_;  // guarded by mutex_
  Stream stderr_;  // guarded by mutex_
  std::optional<int> exit_code_;
  std::thread out_reader_;
  std::thread err_reader_;
};

// A program run to its end.
struct Finished {
  int exit_code = -1;
  std::string out;
  std::string err;
};
Finished RunProgram(const std::vector<std::string>& argv, const std::string& input = "");

// Our programs in this build.
inline constexpr char kTandem[] = "client/tandem";
inline constexpr char kCoordinator[] = "coordinator/tandem_coordinator";
inline constexpr char kWorker[] = "worker/tandem_worker";

// What a file of /proc holds; empty when its process has ended.
std::string ReadProcFile(const std::string& path);
// Whether a process of this id runs (a zombie does not).
bool IsRunning(pid_t pid);
// Children of a process, alive now.
std::vector<pid_t> ChildrenOf(pid_t pid);
// Waits until none of `pids` runs.
bool WaitGone(const std::vector<pid_t>& pids, Deadline deadline);

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_CLUSTER_PROGRAM_H_
