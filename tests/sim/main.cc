// The simulation as a program: many seeds, or one again. See tests/sim/README.md.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>

#include "common/base/log.h"
#include "tests/sim/violation.h"
#include "tests/sim/world.h"

namespace tandem::sim {
namespace {

struct Flags {
  uint64_t seed = 1;  // the first
  uint64_t num_seeds = 1;
  uint64_t num_steps = 1100;  // per seed
  bool verbose = false;
};

bool Parse(int argc, char** argv, Flags& flags) {
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--verbose") {
      flags.verbose = true;
      continue;
    }
    uint64_t* const value = name == "--seed"    ? &flags.seed
                            : name == "--seeds" ? &flags.num_seeds
                            : name == "--steps" ? &flags.num_steps
                                                : nullptr;
    if (value == nullptr || ++i == argc) return false;
    char* end = nullptr;
    *value = std::strtoull(argv[i], &end, 10);
    if (end == argv[i] || *end != '\0') return false;
  }
  return true;
}

int Main(int argc, char** argv) {
  Flags flags;
  if (!Parse(argc, argv, flags)) {
    std::cerr << "usage: sim [--seed FIRST] [--seeds NUMBER] [--steps PER_SEED] [--verbose]\n";
    return 2;
  }
  // Losses are what this is about: without --verbose their lines are dropped, also those of errors.
  SetLogLevel(flags.verbose ? LogLevel::kInfo
                            : static_cast<LogLevel>(static_cast<int>(LogLevel::kError) + 1));
  Report all;
  for (uint64_t seed = flags.seed; seed < flags.seed + flags.num_seeds; ++seed) {
    BeginRun(seed, flags.num_steps);
    all.Add(World(seed, flags.num_steps).Run());
  }
  std::cout << "sim: " << flags.num_seeds << " seeds without a violation: " << all.steps
            << " steps, " << all.events << " events, " << all.requests << " requests, "
            << all.tokens << " tokens, " << all.cached_tokens << " of prompts cached, "
            << all.preemptions << " preemptions, " << all.accepted_drafts << " drafts accepted ("
            << all.accepted_guesses << " of workers), " << all.unguessed_steps
            << " steps without a guesser, " << all.faults << " faults, " << all.losses
            << " losses, " << all.given_up << " runs given up, trace " << std::hex << all.trace
            << std::endl;
  return 0;
}

}  // namespace
}  // namespace tandem::sim

int main(int argc, char** argv) { return tandem::sim::Main(argc, argv); }
