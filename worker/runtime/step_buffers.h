// StepBuffers: a step's inputs, staged in host memory and uploaded in one copy; sampled ids,
// downloaded in one.
//
// Sized once for the largest step that the limits allow. Arrays stand one after the other, each
// 64-byte aligned.
#ifndef TANDEM_WORKER_RUNTIME_STEP_BUFFERS_H_
#define TANDEM_WORKER_RUNTIME_STEP_BUFFERS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/step/descriptor.h"
#include "kernels/backend.h"
#include "worker/model/decoder.h"

namespace tandem::worker {

// The sampling half of a staged step, in device memory.
struct SamplingBatch {
  const kernels::SamplingRow* rows = nullptr;  // (count)
  uint32_t count = 0;
  const int32_t* banned = nullptr;
};

class StepBuffers {
 public:
  // `limits` as Validate knows them; at most max_seqs rows per step.
  static absl::StatusOr<StepBuffers> Create(const step::StepLimits& limits,
                                            kernels::Backend& backend);

  // Stages `step` (validated against the limits) and encodes its upload. The batch points into
  // device memory. RESOURCE_EXHAUSTED when its banned ids do not fit.
  struct Staged {
    Batch batch;
    SamplingBatch sampling;
  };
  absl::StatusOr<Staged> Stage(const step::StepDescriptor& step, kernels::Backend& backend);

  // Where rank 0's sampler writes, and what Broadcast spreads: (max rows) ids in device memory.
  int32_t* sampled() const { return sampled_; }
  // The same on the host, after DownloadSampled and Wait.
  std::span<const int32_t> host_sampled() const { return host_sampled_; }
  void DownloadSampled(uint32_t count, kernels::Backend& backend);

  uint64_t device_bytes() const { return device_.bytes(); }

 private:
  // Appends an array to the staging area; returns where it will stand in device memory.
  template <typename T>
  T* Append(size_t count, T** host);
  template <typename T>
  const T* AppendCopy(std::span<const T> values);

  GroupBatch StageTables(const step::StepDescriptor& step, const step::GroupTables& tables);
  absl::StatusOr<SamplingBatch> StageSampling(const step::StepDescriptor& step);

  step::StepLimits limits_;
  std::vector<std::byte> staging_;
  size_t used_ = 0;
  kernels::Buffer device_;
  int32_t* sampled_ = nullptr;
  std::vector<int32_t> host_sampled_;
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_RUNTIME_STEP_BUFFERS_H_
