// ControlStream: the worker's gRPC connection to the coordinator, dialled once per process.
//
// Commands are queued for the main thread; step frames (transport grpc) go to a channel; the end of
// an epoch is reported on the stream's thread, because the main thread may be inside a collective.
// Thread-safe.
#ifndef TANDEM_WORKER_CONTROL_CONTROL_STREAM_H_
#define TANDEM_WORKER_CONTROL_CONTROL_STREAM_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/tls/tls_files.h"
#include "common/transport/rendezvous.h"
#include "worker/control/commands.h"

namespace tandem::worker {

struct Greeting {
  std::optional<int> rank;  // empty: any
  std::string token;
  std::string host_id;
  std::string host_name{};  // for display, as is
  std::string device;
};

class ControlStream {
 public:
  using EpochEnded = std::function<void()>;
  using StepFrame = std::function<void(std::string frame)>;

  virtual ~ControlStream() = default;

  // Connects and sends Hello. With `tls` the coordinator must have a certificate of the name
  // tandem-coordinator, whatever its address is. INVALID_ARGUMENT for files that can't be used,
  // UNAVAILABLE without a connection by the deadline.
  static absl::StatusOr<std::unique_ptr<ControlStream>> Dial(const std::string& address,
                                                             const Greeting& greeting,
                                                             Deadline deadline,
                                                             const TlsFiles& tls = {});

  // The next command; none at the deadline. Once the worker is to stop, StopCommand comes before
  // queued commands.
  virtual std::optional<Command> NextCommand(Deadline deadline) = 0;

  // OK while `epoch` is not over; else the reason: aborted, superseded by a higher one, or the
  // worker is to stop.
  virtual absl::Status CheckEpoch(Epoch epoch) const = 0;

  virtual absl::Status SendLoading(Epoch epoch, uint64_t done_bytes, uint64_t total_bytes) = 0;
  virtual absl::Status SendReady(Epoch epoch, const std::vector<uint32_t>& num_blocks,
                                 const std::vector<std::string>& memory_plan) = 0;
  virtual absl::Status SendStarted(Epoch epoch) = 0;
  virtual absl::Status SendFailed(Epoch epoch, const absl::Status& status) = 0;
  virtual absl::Status SendStepResult(std::span<const uint8_t> frame) = 0;

  // Replace the callbacks; null: none. The old callback does not run after this returns.
  // Called whenever CheckEpoch may have changed.
  virtual void OnEpochEnded(EpochEnded callback) = 0;
  virtual void OnStepFrame(StepFrame callback) = 0;

  // The coordinator's registry, for keys of one epoch; waits end when the epoch ends. Must not
  // outlive the stream.
  virtual std::unique_ptr<transport::Rendezvous> MakeRendezvous(Epoch epoch) = 0;
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_CONTROL_CONTROL_STREAM_H_
