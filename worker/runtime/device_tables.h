// DeviceTables: the block tables of an epoch in device memory, where attention reads them: one row
// per KV group and sequence slot, at a fixed address, so that decode graphs may point to it.
// step::BlockTables is the host's copy, for Validate.
//
// A step writes the blocks that it appends (StepBuffers::Stage). Entries before a table's first
// live block and beyond its length are stale and never read. One thread.
#ifndef TANDEM_WORKER_RUNTIME_DEVICE_TABLES_H_
#define TANDEM_WORKER_RUNTIME_DEVICE_TABLES_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "common/step/descriptor.h"
#include "kernels/backend.h"

namespace tandem::worker {

class DeviceTables {
 public:
  // All entries are 0.
  static absl::StatusOr<DeviceTables> Create(const step::StepLimits& limits,
                                             kernels::Backend& backend);
  // Device memory allocated by Create.
  static uint64_t DeviceBytes(const step::StepLimits& limits);

  // (groups, max_seqs, stride), in blocks.
  int32_t* data() const { return reinterpret_cast<int32_t*>(buffer_.data()); }
  size_t size() const { return buffer_.bytes() / sizeof(int32_t); }
  uint32_t stride() const { return stride_; }
  // Index into data() of a table's first entry.
  size_t Row(size_t group, uint32_t slot) const { return (group * max_seqs_ + slot) * stride_; }

 private:
  kernels::Buffer buffer_;
  uint32_t max_seqs_ = 0;
  uint32_t stride_ = 0;
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_RUNTIME_DEVICE_TABLES_H_
