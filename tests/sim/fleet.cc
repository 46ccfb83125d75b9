#include "tests/sim/fleet.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tandem::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The coordinator's handle of a worker that it has started.
class Process : public coordinator::ChildProcess {
 public:
  Process(Worker& worker, EventClock& clock, Random& random)
      : worker_(worker), clock_(clock), random_(random) {}
  ~Process() override { worker_.Exit(kKilled); }

  pid_t pid() const override { return static_cast<pid_t>(worker_.pid()); }
  absl::Status Poll() override { return worker_.ended(); }
  bool WaitExit(Duration timeout) override {
    return clock_.WaitFor(timeout, [this] { return !worker_.running(); });
  }
  void Kill(int signal) override {
    // A process in the kernel ends late: its memory is freed, or a device does not answer.
    const Duration late = random_.Chance(0.02) ? random_.Time(seconds(4), seconds(20))
                                               : random_.Time(milliseconds(0), milliseconds(20));
    from_outside_ = from_outside_ || IsStopped();
    killed_here_ = true;
    clock_.After(late, [&worker = worker_, signal] {
      worker.Exit(absl::StrCat("killed by signal ", signal));
    });
  }
  bool IsStopped() override { return worker_.running() && worker_.stopped(); }
  bool EndedFromOutside() override {
    return from_outside_ || (!killed_here_ && worker_.ended().message() == kKilled);
  }

 private:
  Worker& worker_;
  EventClock& clock_;
  Random& random_;
  bool killed_here_ = false;
  bool from_outside_ = false;
};

}  // namespace

Worker& Fleet::Start(std::optional<int> rank) {
  const int64_t pid = 1000 + static_cast<int64_t>(workers_.size());
  Worker& worker = *workers_.emplace_back(std::make_unique<Worker>(host_, rank, pid));
  worker.Boot();
  return worker;
}

absl::StatusOr<std::shared_ptr<coordinator::ChildProcess>> Fleet::Launch(size_t rank) {
  return std::make_shared<Process>(Start(static_cast<int>(rank)), host_.network.clock,
                                   host_.network.random);
}

void Fleet::StartExternal() {
  for (uint32_t i = 0; i < host_.scenario.num_ranks; ++i) Start(std::nullopt);
  Replace();
}

void Fleet::Replace() {
  size_t num_running = 0;
  for (const auto& worker : workers_) num_running += worker->running();
  for (; num_running < host_.scenario.num_ranks; ++num_running) Start(std::nullopt);
  host_.network.clock.After(host_.network.random.Time(milliseconds(100), seconds(5)),
                            [this] { Replace(); });
}

void Fleet::StartImpostor() {
  const bool wants_rank = host_.network.random.Chance(0.5);
  const auto rank = static_cast<int>(host_.network.random.Below(host_.scenario.num_ranks));
  Start(wants_rank ? std::optional(rank) : std::nullopt);
}

Worker* Fleet::AnyRunning() {
  std::vector<Worker*> running;
  for (const auto& worker : workers_) {
    if (worker->running()) running.push_back(worker.get());
  }
  return running.empty() ? nullptr : running[host_.network.random.Below(running.size())];
}

bool Fleet::AnyStopped() const {
  return std::ranges::any_of(
      workers_, [](const auto& worker) { return worker->running() && worker->stopped(); });
}

bool Fleet::AnyBroken(uint64_t epoch) const {
  return std::ranges::any_of(workers_, [&](const auto& worker) {
    return worker->epoch() == epoch && (!worker->running() || worker->stopped());
  });
}

size_t Fleet::num_connected() const {
  return static_cast<size_t>(
      std::ranges::count_if(workers_, [](const auto& worker) { return worker->stream().open(); }));
}

}  // namespace tandem::sim
