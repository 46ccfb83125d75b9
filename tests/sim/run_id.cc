#include "tests/sim/run_id.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tandem::sim {
namespace {

// Long after the end of every run.
constexpr auto kNever = std::chrono::hours(1000);

void LeaveOutFaults(Scenario& scenario) {
  scenario.fault_gap = kNever;
  scenario.faults_at_start = false;
}

void LeaveOutDrafts(Scenario& scenario) {
  scenario.engine.max_draft_tokens = scenario.engine.scheduler.max_draft_rows = 0;
  scenario.engine.workers_guess = scenario.model.workers_guess = false;
}

void LeaveOutPrefixCache(Scenario& scenario) {
  scenario.engine.kv_cache.enable_prefix_cache = false;
  scenario.engine.kv_cache.snapshots.reset();
  // Drafts need the snapshots.
  if (scenario.model.recurrent) LeaveOutDrafts(scenario);
}

void LeaveOutRecurrentState(Scenario& scenario) {
  scenario.model.recurrent = false;
  scenario.engine.kv_cache.snapshots.reset();
}

void LeaveOutScarcity(Scenario& scenario) {
  for (coordinator::KvGroup& group : scenario.engine.kv_cache.groups) group.num_blocks += 1000;
}

constexpr Part kParts[] = {
    {"faults", &LeaveOutFaults},
    {"poison", [](Scenario& scenario) { scenario.has_poison = false; }},
    {"drafts", &LeaveOutDrafts},
    {"prefix-cache", &LeaveOutPrefixCache},
    {"recurrent-state", &LeaveOutRecurrentState},
    {"scarcity", &LeaveOutScarcity},
    {"overlap", [](Scenario& scenario) { scenario.engine.pipeline_depth = 1; }},
    {"target-itl", [](Scenario& scenario) { scenario.engine.scheduler.target_itl = {}; }},
    {"ranks", [](Scenario& scenario) { scenario.num_ranks = 1; }},
    {"external-workers", [](Scenario& scenario) { scenario.external = false; }},
};

}  // namespace

std::span<const Part> Parts() { return kParts; }

bool IsPart(const std::string& name) { return std::ranges::count(kParts, name, &Part::name) > 0; }

Scenario RunId::Draw(Random& random) const {
  Scenario scenario = Scenario::Draw(random);
  for (const Part& part : kParts) {
    if (std::ranges::count(without, part.name) > 0) part.leave_out(scenario);
  }
  return scenario;
}

std::string RunId::Command() const {
  return absl::StrCat("./dev sim --seed ", seed, " --steps ", num_steps,
                      without.empty() ? "" : " --without ", absl::StrJoin(without, ","));
}

}  // namespace tandem::sim
