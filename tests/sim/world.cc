#include "tests/sim/world.h"

#include <utility>
#include <vector>

#include "tests/sim/violation.h"

namespace tandem::sim {

using coordinator::EngineLoop;
using coordinator::ReadyWorkers;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

void Report::Add(const Report& other) {
  steps += other.steps;
  events += other.events;
  requests += other.requests;
  tokens += other.tokens;
  faults += other.faults;
  losses += other.losses;
  preemptions += other.preemptions;
  cached_tokens += other.cached_tokens;
  accepted_drafts += other.accepted_drafts;
  accepted_guesses += other.accepted_guesses;
  unguessed_steps += other.unguessed_steps;
  given_up += other.given_up;
  trace = coordinator::SimulatedMix(trace, other.trace);
}

World::World(const RunId& run)
    : num_steps_(run.num_steps),
      random_(run.seed),
      scenario_(run.Draw(random_)),
      registry_(static_cast<int>(scenario_.num_ranks), /*one_host=*/true),
      host_{.network = {.clock = clock_,
                        .random = random_,
                        .registry = registry_,
                        .harm = harm_,
                        .most_delay = scenario_.network_delay,
                        .one_host = !scenario_.external},
            .scenario = scenario_,
            .collectives = collectives_,
            .circumstances = circumstances_},
      fleet_(host_),
      faults_(host_, fleet_),
      workload_(clock_, random_, scenario_, circumstances_) {}

Report World::Run() {
  clock_.set_observer([this] { Observe(); });
  auto cluster = coordinator::Cluster::Over(
      registry_,
      scenario_.external ? coordinator::Cluster::LaunchFn()
                         : [this](size_t rank) { return fleet_.Launch(rank); },
      clock_);
  RequireOk(cluster.status());
  if (scenario_.external) fleet_.StartExternal();
  const auto assign = [this](Epoch epoch, const std::vector<std::string>&) {
    std::vector<config::WorkerAssignment> ranks;
    for (int rank = 0; rank < static_cast<int>(scenario_.num_ranks); ++rank) {
      ranks.push_back(
          {.epoch = epoch, .rank = rank, .size = static_cast<int>(scenario_.num_ranks)});
    }
    return ranks;
  };
  coordinator::SupervisorOptions options;
  options.cluster.external = scenario_.external;
  options.worker = scenario_.worker;
  options.assign = assign;
  options.load_timeout = scenario_.load_timeout;
  options.max_restarts = scenario_.max_restarts;
  options.restart_window = scenario_.restart_window;
  options.clock = &clock_;
  supervisor_ = std::make_unique<coordinator::Supervisor>(std::move(options), *std::move(cluster));
  if (scenario_.faults_at_start) faults_.Start();
  if (BringUp()) {
    engine_->Run();
    engine_->Shutdown();
    invariants_->CheckEnd();
  }
  supervisor_->Shutdown(absl::OkStatus(), Deadline::After(seconds(2), clock_));
  return MakeReport();
}

bool World::BringUp() {
  absl::StatusOr<ReadyWorkers> ready = supervisor_->Bring(nullptr);
  if (!ready.ok()) {
    if (!scenario_.faults_at_start) RequireOk(ready.status());
    return false;
  }
  for (size_t group = 0; group < ready->num_blocks.size(); ++group) {
    scenario_.engine.kv_cache.groups[group].num_blocks = ready->num_blocks[group];
  }
  scenario_.engine.epoch = ready->epoch;
  Serve(*std::move(ready));
  return true;
}

void World::Serve(ReadyWorkers ready) {
  auto core =
      std::make_unique<coordinator::EngineCore>(scenario_.engine, std::move(*ready.group), clock_);
  core_ = core.get();
  engine_ = std::make_unique<EngineLoop>(
      std::move(core),
      [this](const absl::Status& loss) {
        // Only a budget of restarts gives up.
        if (scenario_.max_restarts > 100) RequireOk(loss);
        circumstances_.lost = true;
      },
      [this](const auto& loss, const auto& cancelled) { return Recover(loss, cancelled); },
      /*num_writers=*/0, clock_);
  invariants_.emplace(host_, fleet_, workload_, *core_, *engine_);
  workload_.Start(*engine_);
  if (!scenario_.faults_at_start) faults_.Start();
}

absl::StatusOr<ReadyWorkers> World::Recover(const absl::Status& loss,
                                            const std::function<bool()>& cancelled) {
  invariants_->CheckLoss(loss);
  ++circumstances_.num_losses;
  faults_.BeginRecovery();
  invariants_->BeginRecovery();
  absl::StatusOr<ReadyWorkers> ready = supervisor_->Recover(loss, cancelled);
  invariants_->EndRecovery(ready.ok());
  faults_.EndRecovery();
  return ready;
}

void World::Observe() {
  NoteEvent(clock_.num_events());
  if (!invariants_.has_value()) return;
  invariants_->Check();
  if (!ending_ && static_cast<uint64_t>(core_->timings().steps) >= num_steps_) BeginEnd();
}

void World::BeginEnd() {
  ending_ = true;
  clock_.After(random_.Chance(0.5) ? Duration{} : Duration(seconds(60)), [this] { faults_.End(); });
  clock_.After(minutes(60), [] { Violation("the requests do not come to an end"); });
  if (random_.Chance(0.3)) return Stop();
  engine_->StopAdmission([this] {
    // The engine's lock is held.
    clock_.After(Duration{}, [this] { Stop(); });
  });
  if (random_.Chance(0.5)) clock_.After(random_.Time(Duration{}, seconds(2)), [this] { Stop(); });
}

void World::Stop() {
  workload_.End();
  circumstances_.stopping = true;
  engine_->Stop();
}

Report World::MakeReport() const {
  Report report{.events = clock_.num_events(),
                .requests = workload_.num_requests(),
                .tokens = circumstances_.num_tokens,
                .faults = faults_.num_faults(),
                .losses = circumstances_.num_losses,
                .given_up = circumstances_.lost,
                .trace = coordinator::SimulatedMix(clock_.trace(), circumstances_.trace)};
  if (core_ == nullptr) return report;
  const auto stats = core_->Stats();
  report.steps = static_cast<uint64_t>(stats.steps);
  report.preemptions = static_cast<uint64_t>(stats.preemptions);
  report.cached_tokens = static_cast<uint64_t>(stats.cached_tokens);
  report.accepted_drafts = static_cast<uint64_t>(stats.accepted_drafts);
  report.unguessed_steps = static_cast<uint64_t>(stats.unguessed_steps);
  if (scenario_.engine.workers_guess) report.accepted_guesses = report.accepted_drafts;
  return report;
}

}  // namespace tandem::sim
