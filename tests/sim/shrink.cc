#include "tests/sim/shrink.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "common/base/check.h"
#include "tests/sim/violation.h"
#include "tests/sim/world.h"

namespace tandem::sim {
namespace {

// Of one run. BeginRun limits the time that it computes; one that waits for ever ends here.
constexpr unsigned kMostSeconds = 300;

}  // namespace

RunId Shrink(RunId run, const std::function<bool(const RunId&)>& fails) {
  for (const Part& part : Parts()) {
    RunId smaller = run;
    smaller.without.emplace_back(part.name);
    if (std::ranges::count(run.without, part.name) == 0 && fails(smaller)) run = smaller;
  }
  for (uint64_t less = run.num_steps / 2; less > 0; less /= 2) {
    RunId smaller = run;
    while (smaller.num_steps > less) {
      smaller.num_steps -= less;
      if (!fails(smaller)) break;
      run = smaller;
    }
  }
  return run;
}

bool FailsInAnotherProcess(const RunId& run) {
  const pid_t child = fork();
  TANDEM_CHECK(child >= 0) << "no process";
  if (child == 0) {
    const int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDERR_FILENO);
    alarm(kMostSeconds);  // SIGALRM ends the process
    BeginRun(run);
    World(run).Run();
    _exit(0);
  }
  int status = 0;
  TANDEM_CHECK(waitpid(child, &status, 0) == child);
  return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

}  // namespace tandem::sim
