#include "worker/comm/device_communicators.h"

#include <utility>

namespace tandem::worker {
namespace {

DeviceCommunicatorMaker& Maker() {
  static auto* const maker = new DeviceCommunicatorMaker();
  return *maker;
}

}  // namespace

void RegisterDeviceCommunicator(DeviceCommunicatorMaker maker) { Maker() = std::move(maker); }

absl::StatusOr<std::unique_ptr<JoinableCommunicator>> OpenDeviceCommunicator(
    const DeviceCommunicatorParts& parts) {
  if (Maker() != nullptr) return Maker()(parts);
  return absl::UnimplementedError("this program has no communicator for a device's stream");
}

}  // namespace tandem::worker
