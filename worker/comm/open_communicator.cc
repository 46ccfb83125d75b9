#include "worker/comm/open_communicator.h"

#include <utility>

#include "worker/comm/shm_communicator.h"
#include "worker/comm/tcp/tcp_communicator.h"

namespace tandem::worker {
namespace {

CommunicatorOpener& DeviceOpener() {
  static auto* const opener = new CommunicatorOpener();
  return *opener;
}

}  // namespace

void RegisterDeviceCommunicator(CommunicatorOpener opener) { DeviceOpener() = std::move(opener); }

absl::StatusOr<std::unique_ptr<Communicator>> OpenCommunicator(const CommunicatorParts& parts) {
  if (parts.host_stream != nullptr) {
    return parts.over_tcp ? TcpCommunicator::Open(parts) : ShmCommunicator::Open(parts);
  }
  if (parts.device_stream == nullptr) {
    return absl::UnimplementedError("no communicator for a backend without a stream");
  }
  if (DeviceOpener() != nullptr) return DeviceOpener()(parts);
  return absl::UnimplementedError("this program has no communicator for a device's stream");
}

}  // namespace tandem::worker
