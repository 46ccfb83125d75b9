#include "tests/sim/violation.h"

#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>

namespace tandem::sim {
namespace {

constexpr int kMostSeconds = 60;  // of one run, of this process's time

uint64_t seed_of_run = 0;
uint64_t event_of_run = 0;
char command_of_run[512] = "";

// In a signal handler as well: the process ends here, whatever state it is in.
[[noreturn]] void End(std::string_view what) {
  char text[1024];
  const int length = snprintf(
      text, sizeof(text),
      "\nsim: seed %lu, event %lu: %.*s\nreplay: %s\n(--shrink looks for a smaller run)\n",
      seed_of_run, event_of_run, static_cast<int>(what.size()), what.data(), command_of_run);
  const size_t size = static_cast<size_t>(length) < sizeof(text) ? length : sizeof(text) - 1;
  if (write(STDERR_FILENO, text, size) < 0) _exit(2);
  _exit(1);
}

void OnSignal(int number) {
  End(number == SIGABRT   ? "a check failed (above)"
      : number == SIGPROF ? "the run does not come to an end"
                          : "a crash");
}

}  // namespace

void BeginRun(const RunId& run) {
  seed_of_run = run.seed;
  snprintf(command_of_run, sizeof(command_of_run), "%s", run.Command().c_str());
  event_of_run = 0;
  for (const int number : {SIGABRT, SIGPROF, SIGSEGV, SIGBUS}) signal(number, OnSignal);
  const itimerval limit{.it_interval = {}, .it_value = {.tv_sec = kMostSeconds, .tv_usec = 0}};
  setitimer(ITIMER_PROF, &limit, nullptr);
}

void NoteEvent(uint64_t event) { event_of_run = event; }

void Violation(std::string_view what) { End(what); }

}  // namespace tandem::sim
