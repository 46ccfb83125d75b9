// What the coordinator tells a worker, as the main thread takes it from the control stream.
#ifndef TANDEM_WORKER_LIFE_COMMANDS_H_
#define TANDEM_WORKER_LIFE_COMMANDS_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/model/build_spec.h"
#include "kernels/factory.h"
#include "worker/runtime/runner_options.h"

namespace tandem::worker {

struct ConfigureCommand {
  Epoch epoch;
  int rank = 0;
  int size = 1;
  bool expert_parallel = false;
  model::SpecOptions spec;
  std::string model_path;
  uint64_t model_fingerprint = 0;
  kernels::BackendOptions backend;
  RunnerOptions runner;
  std::string step_transport;
  std::string step_channel_address;
  int64_t step_timeout_ms = 0;
  absl::Status invalid;  // not OK: a field could not be understood; the worker answers Failed
};

struct LoadCommand {
  Epoch epoch;
};

struct StartCommand {
  Epoch epoch;
  std::vector<uint32_t> num_blocks;
};

// The coordinator says goodbye, refuses us, or is gone.
struct StopCommand {
  absl::Status reason;  // OK: an orderly shutdown
};

using Command = std::variant<ConfigureCommand, LoadCommand, StartCommand, StopCommand>;

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_LIFE_COMMANDS_H_
