#include "tests/cluster/program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "common/base/check.h"

extern char** environ;

namespace tandem::testing {
namespace {

constexpr auto kPatience = std::chrono::seconds(120);

// A file without a name that holds the program's input.
int InputFile(const std::string& input) {
  const int fd = static_cast<int>(syscall(SYS_memfd_create, "input", 0));
  TANDEM_CHECK(write(fd, input.data(), input.size()) == static_cast<ssize_t>(input.size()));
  lseek(fd, 0, SEEK_SET);
  return fd;
}

int PollMillis(Deadline deadline) {
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(deadline.Left()).count());
}

// Readable once the process has ended.
bool WaitPid(pid_t pid, Deadline deadline) {
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (pidfd < 0) return true;  // gone and reaped
  pollfd waiter{.fd = pidfd, .events = POLLIN, .revents = 0};
  const bool ended = poll(&waiter, 1, PollMillis(deadline)) == 1;
  close(pidfd);
  return ended;
}

}  // namespace

std::unique_ptr<Program> Program::Start(const std::vector<std::string>& argv,
                                        const std::string& input) {
  std::vector<char*> args;
  for (const std::string& arg : argv) args.push_back(const_cast<char*>(arg.c_str()));
  args.push_back(nullptr);
  int out[2], err[2];
  TANDEM_CHECK(pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0);
  for (int fd : {out[0], err[0]}) TANDEM_CHECK(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
  const int in = InputFile(input);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err[1], STDERR_FILENO);
  posix_spawn_file_actions_addclose(&actions, in);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, args[0], &actions, nullptr, args.data(), environ);
  TANDEM_CHECK(error == 0) << argv[0] << ": " << strerror(error);
  posix_spawn_file_actions_destroy(&actions);
  close(in);
  close(out[1]);
  close(err[1]);
  return std::unique_ptr<Program>(new Program(pid, out[0], err[0]));
}

Program::Program(pid_t pid, int out_fd, int err_fd)
    : pid_(pid), stdout_{.fd = out_fd}, stderr_{.fd = err_fd} {
  out_reader_ = std::thread([this] { Read(stdout_); });
  err_reader_ = std::thread([this] { Read(stderr_); });
}

Program::~Program() {
  if (!exit_code_.has_value()) {
    kill(pid_, SIGKILL);
    WaitExit(Deadline::After(kPatience));
  }
  out_reader_.join();
  err_reader_.join();
}

void Program::Read(Stream& stream) {
  bool open = true;
  while (open) {
    pollfd waiter{.fd = stream.fd, .events = POLLIN, .revents = 0};
    poll(&waiter, 1, -1);
    std::lock_guard lock(mutex_);
    TakeWhatIsThere(stream);
    open = stream.open;
  }
  close(stream.fd);
}

void Program::TakeWhatIsThere(Stream& stream) {
  char buffer[4096];
  ssize_t length = 0;
  while (stream.open && (length = read(stream.fd, buffer, sizeof(buffer))) >= 0) {
    stream.text.append(buffer, static_cast<size_t>(length));
    stream.open = length > 0;
  }
  changed_.notify_all();
}

void Program::Signal(int signal) { kill(pid_, signal); }

bool Program::WaitText(const Stream& stream, const std::string& text, Deadline deadline) {
  std::unique_lock lock(mutex_);
  auto found = [&] { return stream.text.find(text) != std::string::npos; };
  deadline.Wait(changed_, lock, [&] { return found() || !stream.open; });
  return found();
}

bool Program::WaitStdout(const std::string& text, Deadline deadline) {
  return WaitText(stdout_, text, deadline);
}

bool Program::WaitStderr(const std::string& text, Deadline deadline) {
  return WaitText(stderr_, text, deadline);
}

std::optional<int> Program::WaitExit(Deadline deadline) {
  if (exit_code_.has_value()) return exit_code_;
  if (!WaitPid(pid_, deadline)) return std::nullopt;
  int status = 0;
  TANDEM_CHECK(waitpid(pid_, &status, 0) == pid_);
  exit_code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  // All that it wrote lies in the pipes; its children may hold them open for longer.
  std::lock_guard lock(mutex_);
  TakeWhatIsThere(stdout_);
  TakeWhatIsThere(stderr_);
  return exit_code_;
}

std::string Program::Stdout() {
  std::lock_guard lock(mutex_);
  return stdout_.text;
}

std::string Program::Stderr() {
  std::lock_guard lock(mutex_);
  return stderr_.text;
}

Finished RunProgram(const std::vector<std::string>& argv, const std::string& input) {
  auto program = Program::Start(argv, input);
  Finished finished;
  const auto deadline = Deadline::After(kPatience);
  if (const auto code = program->WaitExit(deadline)) finished.exit_code = *code;
  // The streams close with the process and its children.
  program->WaitStdout("\x01 never printed", deadline);
  program->WaitStderr("\x01 never printed", deadline);
  finished.out = program->Stdout();
  finished.err = program->Stderr();
  return finished;
}

std::string ReadProcFile(const std::string& path) {
  // Inserting a buffer sets a bit where iterators would throw what a read returns.
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

namespace {

// The folders of the process's threads in /proc, as far as it still runs.
std::vector<std::string> ThreadsOf(pid_t pid) {
  std::vector<std::string> threads;
  std::error_code error;
  std::filesystem::directory_iterator entry("/proc/" + std::to_string(pid) + "/task", error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    threads.push_back(entry->path());
  }
  return threads;
}

}  // namespace

bool IsRunning(pid_t pid) {
  const std::string stat = ReadProcFile("/proc/" + std::to_string(pid) + "/stat");
  const size_t end = stat.rfind(')');
  if (end == std::string::npos) return false;
  if (stat[end + 2] != 'Z' && stat[end + 2] != 'X') return true;
  // The first thread of a killed process may have ended before the others.
  return ThreadsOf(pid).size() > 1;
}

std::vector<pid_t> ChildrenOf(pid_t pid) {
  // Children belong to the thread that started them.
  std::vector<pid_t> children;
  for (const std::string& thread : ThreadsOf(pid)) {
    std::istringstream pids(ReadProcFile(thread + "/children"));
    for (pid_t child = 0; pids >> child;) children.push_back(child);
  }
  return children;
}

bool WaitGone(const std::vector<pid_t>& pids, Deadline deadline) {
  for (pid_t pid : pids) {
    if (IsRunning(pid) && !WaitPid(pid, deadline)) return false;
  }
  return true;
}

}  // namespace tandem::testing
