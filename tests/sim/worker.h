// Worker: a simulated worker process: the states of docs/worker-protocol.md, SimulatedPages behind
// the real step codec, and what can go wrong with each. Driven by events only.
#ifndef TANDEM_TESTS_SIM_WORKER_H_
#define TANDEM_TESTS_SIM_WORKER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/config/worker_assignment.h"
#include "common/config/worker_config.h"
#include "common/step/result.h"
#include "tests/coordinator/cluster/simulated_pages.h"
#include "tests/sim/circumstances.h"
#include "tests/sim/collectives.h"
#include "tests/sim/control_stream.h"
#include "tests/sim/scenario.h"

namespace tandem::sim {

// A fault of the next result.
enum class ResultFault {
  kNone,
  kWrongEpoch,
  kWrongStep,
  kWrongRank,
  kError,
  kBadToken,
  kNoRows,
  kBadGuess,      // none is of the vocabulary
  kWrongGuesses,  // one too few; or one, though no row wants any
  kNotFinite,
  kGarbage,   // bytes that are no result
  kDouble,    // arrives twice
  kNoAnswer,  // is lost
};

inline constexpr char kKilled[] = "killed by signal 9";

class Worker {
 public:
  // Outlives the workers.
  struct Host {
    ControlStream::Network network;
    const Scenario& scenario;
    Collectives& collectives;
    Circumstances& circumstances;
  };

  // `rank` unset: any free one.
  Worker(const Host& host, std::optional<int> rank, int64_t pid);

  // Connects after the time that a process takes to start.
  void Boot();

  int64_t pid() const { return pid_; }
  bool running() const { return ended_.ok(); }
  bool stopped() const { return stopped_; }
  // OK while it runs; else how it ended.
  const absl::Status& ended() const { return ended_; }
  // Of its last Configure; 0 before.
  uint64_t epoch() const { return epoch_; }
  ControlStream& stream() { return *stream_; }

  // --- faults ---
  void Exit(const std::string& how);
  void Stop();  // SIGSTOP
  void Continue();
  void FailNextResult(ResultFault fault) { result_fault_ = fault; }
  void FailNextLoad() { fail_load_ = true; }
  void HoldFewerBlocksNext() { fewer_blocks_ = true; }
  // Sends what belongs to no command, of this epoch or the one before.
  void SendStray();

 private:
  enum class State {
    kIdle,
    kConfigured,
    kLoading,
    kJoining,
    kReady,
    kStarting,
    kStepping,
    kFailed
  };

  // Runs `act` unless the process has ended; later if it is stopped.
  void Do(std::function<void()> act);
  // The same after a delay, unless the epoch has changed or was aborted meanwhile.
  void Later(Duration delay, std::function<void()> act);
  void Send(const std::function<void(v1::WorkerMessage&)>& fill);
  void Fail(absl::StatusCode code, const std::string& reason);

  void Take(const v1::CoordinatorMessage& message);
  // One of Configure, Load, Start and a step: those wait while the worker is busy.
  void TakeCommand(const v1::CoordinatorMessage& message);
  void TakeNext();
  void Configure(const v1::Configure& message);
  void Load(const v1::Load& message);
  void Loaded();
  void JoinGroup();
  void TakeAnswer(const v1::RendezvousAnswer& answer);
  void SendReady();
  void Start(const v1::Start& message);
  void Abort(uint64_t epoch, const std::string& reason);

  void BeginStep();
  // Ends the step `run`, unless it has ended.
  void FinishStep(uint64_t run);
  void AnswerStep();
  step::StepResult Compute(const std::string& frame);
  void Answer(step::StepResult result);
  void Distort(ResultFault fault, step::StepResult& result) const;

  const Host host_;
  EventClock& clock_;
  Random& random_;
  const std::optional<int> wanted_rank_;
  const int64_t pid_;
  const std::shared_ptr<ControlStream> stream_;
  absl::Status ended_;
  bool stopped_ = false;
  std::deque<std::function<void()>> held_;  // while stopped

  State state_ = State::kIdle;
  uint64_t serial_ = 0;  // of the epoch's activities: changes when those are void
  uint64_t epoch_ = 0;
  uint64_t aborted_epoch_ = 0;
  bool has_weights_ = false;
  config::WorkerConfig config_;
  config::WorkerAssignment assignment_;
  std::deque<v1::CoordinatorMessage> commands_;
  uint64_t last_call_ = 0;   // of a rendezvous
  uint64_t first_call_ = 0;  // of this epoch
  int num_answers_ = 0;
  std::optional<coordinator::SimulatedPages> pages_;
  std::deque<std::string> steps_;
  bool step_runs_ = false;  // the first of steps_
  uint64_t step_run_ = 0;   // counts them
  bool broken_ = false;     // a step failed: no other is computed in this epoch

  ResultFault result_fault_ = ResultFault::kNone;
  bool fail_load_ = false;
  bool fewer_blocks_ = false;
};

}  // namespace tandem::sim

#endif  // TANDEM_TESTS_SIM_WORKER_H_
