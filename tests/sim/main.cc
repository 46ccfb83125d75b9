// The simulation as a program: many seeds, or one again. See tests/sim/README.md.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/log.h"
#include "tests/sim/shrink.h"
#include "tests/sim/violation.h"
#include "tests/sim/world.h"

namespace tandem::sim {
namespace {

struct Flags {
  RunId run{.num_steps = 1100};  // the first
  uint64_t num_seeds = 1;
  bool verbose = false;
  bool shrink = false;
};

bool ParseNumber(const char* text, uint64_t& value) {
  char* end = nullptr;
  value = std::strtoull(text, &end, 10);
  return end != text && *end == '\0';
}

bool Parse(int argc, char** argv, Flags& flags) {
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--verbose" || name == "--shrink") {
      (name == "--verbose" ? flags.verbose : flags.shrink) = true;
      continue;
    }
    if (++i == argc) return false;
    if (name == "--without") {
      flags.run.without = absl::StrSplit(argv[i], ',');
      continue;
    }
    uint64_t* const value = name == "--seed"    ? &flags.run.seed
                            : name == "--seeds" ? &flags.num_seeds
                            : name == "--steps" ? &flags.run.num_steps
                                                : nullptr;
    if (value == nullptr || !ParseNumber(argv[i], *value)) return false;
  }
  return std::ranges::all_of(flags.run.without, IsPart);
}

std::string Usage() {
  std::string usage =
      "usage: sim [--seed FIRST] [--seeds NUMBER] [--steps PER_SEED] [--without PART,...] "
      "[--shrink] [--verbose]\nparts:";
  for (const Part& part : Parts()) absl::StrAppend(&usage, " ", part.name);
  return usage + "\n";
}

int ShrinkFirst(const Flags& flags) {
  if (!FailsInAnotherProcess(flags.run)) {
    std::cout << flags.run.Command() << ": no violation\n";
    return 1;
  }
  std::cout << Shrink(flags.run, &FailsInAnotherProcess).Command() << std::endl;
  return 0;
}

int Main(int argc, char** argv) {
  Flags flags;
  if (!Parse(argc, argv, flags)) {
    std::cerr << Usage();
    return 2;
  }
  if (flags.shrink && flags.num_seeds != 1) {
    std::cerr << "sim: --shrink is of one run, that of --seed: needed --seeds 1, found "
              << flags.num_seeds << "\n";
    return 2;
  }
  // Losses are what this is about: without --verbose their lines are dropped, also those of errors.
  SetLogLevel(flags.verbose ? LogLevel::kInfo
                            : static_cast<LogLevel>(static_cast<int>(LogLevel::kError) + 1));
  if (flags.shrink) return ShrinkFirst(flags);
  Report all;
  for (uint64_t i = 0; i < flags.num_seeds; ++i, ++flags.run.seed) {
    BeginRun(flags.run);
    all.Add(World(flags.run).Run());
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
