// WorkerLoop: the state machine of a worker process (docs/worker-protocol.md):
// Hello -> Configure -> Load -> Ready -> Start -> Step ..., and Configure again with a higher
// epoch.
//
// Runs on the main thread. State of one epoch (step channel, communicator, KV cache) ends with it;
// weights are kept.
#ifndef TANDEM_WORKER_CONTROL_WORKER_LOOP_H_
#define TANDEM_WORKER_CONTROL_WORKER_LOOP_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/transport/channel.h"
#include "worker/comm/communicator.h"
#include "worker/control/control_stream.h"
#include "worker/control/process_cpus.h"
#include "worker/model/described_model.h"
#include "worker/model/loaded_model.h"
#include "worker/runtime/model_runner.h"

namespace tandem::worker {

// Options of this worker's command line override Configure.
struct WorkerOverrides {
  std::string model{};                // local path of the file; empty: none
  std::string draft_model{};          // of the draft model's, likewise
  std::optional<int> device_index{};  // among the devices visible to this process
  std::string collective_listen{};    // as CommunicatorParts::listen
  bool external = false;              // not started by the coordinator
};

class WorkerLoop {
 public:
  // `stream` and `clock` must outlive this.
  WorkerLoop(ControlStream& stream, WorkerOverrides overrides,
             const Clock& clock = Clock::System());
  ~WorkerLoop();

  // Serves until the coordinator shuts down (OK, or the last command's error) or is lost (its
  // error), or until an epoch begins for a device that is broken.
  absl::Status Run();

  // Not OK if the device takes no more work. Then this must not be destroyed: freeing the device's
  // memory may wait for ever.
  absl::Status CheckDevice() const;

 private:
  // As in docs/worker-protocol.md. A Load or Start that fails leads back to kGreeted; a command
  // that is refused changes nothing.
  enum class State { kGreeted, kConfigured, kReady, kStepping };

  absl::Status Handle(const ConfigureCommand& command);
  absl::Status Handle(const LoadCommand& command);
  absl::Status Handle(const StartCommand& command);

  absl::Status OpenChannel(const ConfigureCommand& command);
  // As CheckDevice, after a step without ops.
  absl::Status TryDevice();
  RunnerOptions Options() const;
  absl::Status LoadModel();
  absl::Status CheckMemory(const RunnerPlan& plan) const;
  // Until all ranks have come so far.
  absl::Status AwaitOthers(const std::string& what) const;
  // Sets prepared_comm_, which the end of the epoch aborts from here on; null with one rank.
  absl::Status JoinCommunicator();
  void DropEpoch();

  // Steps until the channel closes.
  void ServeSteps();

  // Used by the stream's thread while this thread waits: set and cleared under the mutex.
  struct Interruptible {
    Mutex mutex;
    Epoch epoch TANDEM_GUARDED_BY(mutex);  // of the members below
    std::shared_ptr<transport::Channel> channel TANDEM_GUARDED_BY(mutex);
    Communicator* communicator TANDEM_GUARDED_BY(mutex) = nullptr;
  };

  // Ends the waits of the current epoch if it is over.
  void InterruptIfOver() TANDEM_REQUIRES(interruptible_.mutex);

  ControlStream& stream_;
  const WorkerOverrides overrides_;
  const Clock& clock_;
  ProcessCpus cpus_;
  std::optional<ConfigureCommand> config_;  // of the current epoch
  LoadOptions loaded_;                      // the options that model_ was loaded with
  std::unique_ptr<LoadedModel> model_;
  std::unique_ptr<ModelRunner> runner_;          // uses model_
  std::unique_ptr<Communicator> prepared_comm_;  // between Load and Start; then owned by the runner
  std::shared_ptr<transport::Channel> channel_;
  State state_ = State::kGreeted;
  absl::Status failed_;  // of the epoch's last command
  absl::Status broken_;  // not OK: by its device; the worker ends
  Interruptible interruptible_;
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_CONTROL_WORKER_LOOP_H_
