// ServerProfile: what a simulation needs to know of a server: its settings as resolved when it
// started, and how long its workers took for steps. Plain data, and its file: "name = value" lines,
// which people may read and change.
#ifndef TANDEM_COORDINATOR_SIMULATION_SERVER_PROFILE_H_
#define TANDEM_COORDINATOR_SIMULATION_SERVER_PROFILE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/config/device_config.h"
#include "common/config/field.h"
#include "coordinator/engine/engine_config.h"
#include "coordinator/simulation/step_costs.h"

namespace tandem::coordinator {

struct ServerProfile {
  uint32_t format = 1;
  std::string model{};  // its file
  config::Device device = config::Device::kCpu;
  uint32_t tensor_parallel_size = 1;
  uint32_t threads_per_worker = 0;
  std::vector<uint32_t> special_ids{};  // which no prompt of random ids has

  // Without what stands below in the form of the server's flags, and the KV groups.
  EngineConfig engine{};
  uint32_t chunked_prefill_size = 0;  // 0: as many as a step has
  uint32_t target_itl_ms = 0;
  Duration request_timeout{};  // 0: none but the client's
  // By KV group: EngineConfig's groups. Windows of 0 tokens see all; of chunks, 1 is a chunked one.
  std::vector<uint32_t> kv_blocks{};
  std::vector<uint32_t> kv_windows{};
  std::vector<uint32_t> kv_chunked{};
  uint32_t num_snapshots = 0;
  uint32_t snapshot_interval = 0;           // 0: no recurrent states
  std::optional<Duration> overlap_below{};  // unset: steps overlap however long they are

  StepMeasurements steps{};

  // Of a server with these settings, whose steps are `measured`. It guesses no tokens.
  static ServerProfile Of(const EngineConfig& engine, StepMeasurements measured);
  // The whole configuration. INVALID_ARGUMENT if it is none.
  absl::StatusOr<EngineConfig> Engine() const;
  // Whether its file could be read again, but for `steps`. INVALID_ARGUMENT or OUT_OF_RANGE.
  absl::Status CheckWithoutSteps() const;

  void ForEach(config::FieldList& visit);
  // "max-num-seqs=64": a name as in the file. INVALID_ARGUMENT naming what there is, OUT_OF_RANGE.
  absl::Status Set(const std::string& assignment);
};

// The file's text.
std::string ToText(ServerProfile profile);
// NOT_FOUND, INVALID_ARGUMENT or OUT_OF_RANGE, with the flag that names the file, its path and the
// name in it that is wrong.
absl::StatusOr<ServerProfile> ReadServerProfile(const std::string& path, const std::string& flag);

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_SIMULATION_SERVER_PROFILE_H_
