// StepBuffers: a step's inputs, staged in host memory and uploaded in one copy; what the head's
// slices give, on its way back.
//
// A step may want the logits of every token. The head computes them in slices of a fixed number of
// rows, one after the other in the same memory, so that what it needs does not grow with the step.
//
// Sized once for the largest step that the limits allow. Arrays stand one after the other, each
// 64-byte aligned.
#ifndef TANDEM_WORKER_RUNTIME_STEP_BUFFERS_H_
#define TANDEM_WORKER_RUNTIME_STEP_BUFFERS_H_

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/step/descriptor.h"
#include "common/step/result.h"
#include "kernels/backend.h"
#include "worker/model/decoder.h"

namespace tandem::worker {

// The most rows of a slice of the head.
inline uint32_t HeadSliceRows(uint32_t max_seqs, uint32_t max_tokens) {
  return std::min(std::max(max_seqs, 16u), max_tokens);
}
// The most log-probabilities of one row.
inline constexpr uint32_t kMaxRowLogprobs = 1 + step::kMaxLogprobsOf + step::kMaxTopLogprobs;

// Some consecutive rows of a step, as the head computes them. Pointers are to device memory; row
// numbers inside them count from the slice's first row.
struct HeadSlice {
  uint32_t first_row = 0;
  uint32_t num_rows = 0;
  const int32_t* tokens = nullptr;  // (num_rows)
  uint32_t first_sample = 0;        // of the step's samples
  uint32_t num_samples = 0;
  const kernels::SamplingRow* sampling = nullptr;  // (num_samples)
  uint32_t num_logprob_rows = 0;
  const kernels::LogProbsRow* logprob_rows = nullptr;  // (num_logprob_rows)
  uint32_t first_logprob = 0;                          // of the step's log-probabilities
  uint32_t num_logprobs = 0;
};

// The head's half of a staged step.
struct HeadBatch {
  std::vector<HeadSlice> slices;
  uint32_t num_samples = 0;
  const int32_t* banned = nullptr;       // ids of all slices' sampling rows
  const int32_t* logprob_ids = nullptr;  // ids of all slices' logprob rows
};

// Log-probabilities as an op writes them.
struct LogprobArrays {
  int32_t* ids = nullptr;
  float* logprobs = nullptr;
  int32_t* ranks = nullptr;
};

class StepBuffers {
 public:
  // `limits` as Validate knows them; at most max_seqs samples per step.
  static absl::StatusOr<StepBuffers> Create(const step::StepLimits& limits,
                                            kernels::Backend& backend);

  // Stages `step` (validated against the limits) and encodes its upload. The batch points into
  // device memory. RESOURCE_EXHAUSTED when its banned ids do not fit.
  struct Staged {
    Batch batch;
    HeadBatch head;
  };
  absl::StatusOr<Staged> Stage(const step::StepDescriptor& step, kernels::Backend& backend);

  // Where rank 0's sampler writes, and what Broadcast spreads: (max_seqs) ids in device memory.
  int32_t* sampled() const { return sampled_; }
  // The same on the host, after DownloadSampled and Wait.
  std::span<const int32_t> host_sampled() const { return host_sampled_; }
  void DownloadSampled(uint32_t count, kernels::Backend& backend);

  // Takes the slice's log-probabilities from device memory.
  void DownloadLogprobs(const HeadSlice& slice, const LogprobArrays& from,
                        kernels::Backend& backend);
  // Number `index` of the step's log-probabilities, after DownloadLogprobs and Wait.
  step::TokenLogprob Logprob(size_t index) const;

  uint64_t device_bytes() const { return device_.bytes(); }

 private:
  // Appends an array to the staging area; returns where it will stand in device memory.
  template <typename T>
  T* Append(size_t count, T** host);
  template <typename T>
  const T* AppendCopy(std::span<const T> values);

  GroupBatch StageTables(const step::StepDescriptor& step, const step::GroupTables& tables);
  absl::StatusOr<HeadBatch> StageHead(const step::StepDescriptor& step);

  step::StepLimits limits_;
  std::vector<std::byte> staging_;
  size_t used_ = 0;
  kernels::Buffer device_;
  int32_t* sampled_ = nullptr;
  std::vector<int32_t> host_sampled_;
  std::vector<int32_t> host_logprob_ids_;
  std::vector<float> host_logprobs_;
  std::vector<int32_t> host_ranks_;
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_RUNTIME_STEP_BUFFERS_H_
