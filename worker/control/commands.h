// Commands from the coordinator, as read by the main thread from the control stream.
#ifndef TANDEM_WORKER_CONTROL_COMMANDS_H_
#define TANDEM_WORKER_CONTROL_COMMANDS_H_

#include <cstdint>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/config/worker_assignment.h"
#include "common/config/worker_config.h"

namespace tandem::worker {

struct ConfigureCommand {
  config::WorkerConfig config;
  config::WorkerAssignment assignment;
  Epoch epoch;           // the assignment's
  absl::Status invalid;  // not OK: the message is invalid; the worker answers Failed
};

struct LoadCommand {
  Epoch epoch;
};

struct StartCommand {
  Epoch epoch;
  std::vector<uint32_t> num_blocks;
};

// The coordinator shuts down, rejects this worker, or is lost.
struct StopCommand {
  absl::Status reason;  // OK: an orderly shutdown
};

using Command = std::variant<ConfigureCommand, LoadCommand, StartCommand, StopCommand>;

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_CONTROL_COMMANDS_H_
