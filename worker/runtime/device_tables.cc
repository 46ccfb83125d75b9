#include "worker/runtime/device_tables.h"

#include "common/base/status.h"

namespace tandem::worker {

absl::StatusOr<DeviceTables> DeviceTables::Create(const step::StepLimits& limits,
                                                  kernels::Backend& backend) {
  DeviceTables tables;
  tables.max_seqs_ = limits.max_seqs;
  tables.stride_ = limits.MaxTableBlocks();
  TANDEM_ASSIGN_OR_RETURN(tables.buffer_, backend.Allocate(DeviceBytes(limits)));
  return tables;
}

uint64_t DeviceTables::DeviceBytes(const step::StepLimits& limits) {
  return limits.num_blocks.size() * limits.max_seqs * sizeof(int32_t) * limits.MaxTableBlocks();
}

}  // namespace tandem::worker
