#include "tests/sim/faults.h"

namespace tandem::sim {

using std::chrono::milliseconds;
using std::chrono::seconds;

void Faults::Start() { Next(); }

void Faults::Next() {
  if (over_) return;
  // A recovery is harmed about as often as a time of work, although it may take longer.
  const int gaps = recovering_ ? 20 : 2;
  const Duration gap = host_.network.random.Time(Duration{}, gaps * host_.scenario.fault_gap);
  host_.network.clock.After(gap, [this] {
    Strike();
    Next();
  });
}

void Faults::BeginRecovery() {
  recovering_ = true;
  if (!host_.network.random.Chance(0.3)) return;
  host_.network.clock.After(host_.network.random.Time(Duration{}, milliseconds(1000)),
                            [this] { Strike(); });
}

void Faults::Strike() {
  Random& random = host_.network.random;
  Worker* worker = over_ ? nullptr : fleet_.AnyRunning();
  if (worker == nullptr) return;
  ++num_faults_;
  switch (random.Below(9)) {
    case 0:
    case 1:
      return StrikeProcess(*worker);
    case 2:
    case 3:
    case 4:
      return StrikeResult(*worker);
    case 5:
      return worker->stream().HoldUp(random.Chance(0.2)
                                         ? random.Time(seconds(1), seconds(90))
                                         : random.Time(milliseconds(1), milliseconds(500)));
    case 6:
      return worker->SendStray();
    case 7:
      return random.Chance(0.5) ? worker->FailNextLoad() : worker->HoldFewerBlocksNext();
    default:
      return fleet_.StartImpostor();
  }
}

void Faults::StrikeProcess(Worker& worker) {
  Random& random = host_.network.random;
  if (random.Chance(0.6)) return worker.Exit(random.Chance(0.5) ? kKilled : "exited with code 1");
  worker.Stop();
  const bool is_short = random.Chance(0.5);
  const Duration time = is_short ? random.Time(milliseconds(1), milliseconds(1000))
                                 : random.Time(seconds(1), seconds(30));
  const bool continues = is_short || random.Chance(0.5);
  host_.network.clock.After(time, [&worker, continues] {
    if (continues) worker.Continue();
    if (!continues) worker.Exit(kKilled);
  });
}

void Faults::StrikeResult(Worker& worker) {
  worker.FailNextResult(host_.network.random.OneOf(
      {ResultFault::kWrongEpoch, ResultFault::kWrongStep, ResultFault::kWrongRank,
       ResultFault::kError, ResultFault::kBadToken, ResultFault::kNoRows, ResultFault::kBadGuess,
       ResultFault::kWrongGuesses, ResultFault::kNotFinite, ResultFault::kGarbage,
       ResultFault::kDouble, ResultFault::kNoAnswer}));
}

}  // namespace tandem::sim
