// StepBuffers: a step's inputs, staged in host memory and uploaded in one copy; the results of the
// head's slices, downloaded in one copy (plus logits, if requested). The host side is page-locked
// memory (Backend::AllocateHost). Steps in flight have a host side each and share the device's: the
// stream copies and computes in order.
//
// A step may request the logits of every token. The head computes them in slices of a fixed number
// of rows, one after the other in the same memory, so that its memory does not grow with the step.
//
// Sized once for the largest step that the limits allow. Arrays are contiguous, each 64-byte
// aligned; adjustments, lists of ids, of appended blocks and masks, whose lengths vary, come last.
// So all other offsets depend only on the numbers of tokens, sequences and rows, which decode
// graphs rely on.
#ifndef TANDEM_WORKER_RUNTIME_STEP_BUFFERS_H_
#define TANDEM_WORKER_RUNTIME_STEP_BUFFERS_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/step/descriptor.h"
#include "common/step/result.h"
#include "kernels/backend.h"
#include "worker/model/decoder.h"
#include "worker/runtime/device_tables.h"

namespace tandem::worker {

// The most rows of a slice of the head.
inline uint32_t HeadSliceRows(uint32_t max_seqs, uint32_t max_tokens) {
  return std::min(std::max(max_seqs, 16u), max_tokens);
}
// The most log-probabilities of one row.
inline constexpr uint32_t kMaxRowLogprobs = 1 + step::kMaxLogprobsOf + kMaxTopLogprobs;

// Consecutive rows of a step, computed together by the head. Pointers are to device memory; row
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
  uint32_t num_logprobs = 0;
  const kernels::LogitAdjustment* adjustments = nullptr;  // of all slices' sampling rows
  const uint32_t* masks = nullptr;                        // likewise; the same in every step
  const int32_t* logprob_ids = nullptr;                   // ids of all slices' logprob rows
  uint32_t num_pools = 0;
  const kernels::RowRange* pools = nullptr;  // (num_pools), of the batch's tokens
};

// Log-probabilities as written by the op.
struct LogprobArrays {
  int32_t* ids = nullptr;
  float* logprobs = nullptr;
  int32_t* ranks = nullptr;

  LogprobArrays From(size_t index) const { return {ids + index, logprobs + index, ranks + index}; }
};

class StepBuffers {
 public:
  // `limits` as for Validate; at most MaxSamples() samples per step. With the device memory of
  // `shared`, which has the same limits, or its own (null).
  static absl::StatusOr<StepBuffers> Create(const step::StepLimits& limits,
                                            kernels::Backend& backend,
                                            const StepBuffers* shared = nullptr);
  // Device memory allocated by Create, if not shared.
  static uint64_t DeviceBytes(const step::StepLimits& limits);

  // Stages `step` (validated against the limits) in host memory; all pointers are to the
  // destination of Upload. `table_update` makes `tables` current, `token_update` copies the tokens
  // that the step refers to from sampled(), where the previous step has left them. Both run before
  // the batch, and are no part of a decode graph.
  struct Staged {
    kernels::ScatterRunsParams table_update;
    kernels::ScatterRunsParams token_update;
    Batch batch;
    HeadBatch head;
  };
  Staged Stage(const step::StepDescriptor& step, const DeviceTables& tables);
  // Encodes the single copy of everything staged.
  void Upload(kernels::Backend& backend);

  // --- results in device memory ---
  // Written by rank 0's sampler, then broadcast: (limits.MaxSamples()) ids.
  int32_t* sampled() const { return reinterpret_cast<int32_t*>(results_->data()); }
  // Of all rows of the staged step.
  LogprobArrays logprobs() const { return LogprobsIn(*results_); }
  // The sums of the staged step's pools: (num_pools, hidden size).
  double* pooled() const { return PooledIn(*results_); }
  // Encodes the single copy of the samples and, if `all`, of the other results.
  void DownloadResults(bool all, kernels::Backend& backend);
  // Takes logits of the rows that request them, in row order.
  void DownloadLogits(const float* from, size_t count, kernels::Backend& backend);

  // --- results on the host, after Wait ---
  const int32_t* host_sampled() const {
    return reinterpret_cast<const int32_t*>(host_results_.data());
  }
  // Number `index` of the step's log-probabilities.
  step::TokenLogprob Logprob(size_t index) const;
  // The step's pooled states.
  std::span<const double> Pooled() const {
    return {PooledIn(host_results_), num_pools_ * limits_.hidden_size};
  }
  // The logits from DownloadLogits.
  const float* host_logits() const { return reinterpret_cast<const float*>(host_logits_.data()); }

 private:
  // Appends an array to the staging area; returns its future address in device memory.
  template <typename T>
  T* Append(size_t count, T** host);
  template <typename T>
  T* AppendCopy(std::span<const T> values);

  Batch StageBatch(const step::StepDescriptor& step, const DeviceTables& tables);
  BatchStates StageStates(const step::StepDescriptor& step);
  kernels::ScatterRunsParams StageTableUpdate(const step::StepDescriptor& step,
                                              const DeviceTables& tables);
  kernels::ScatterRunsParams StageTokenUpdate(const step::StepDescriptor& step);
  HeadBatch StageHead(const step::StepDescriptor& step);
  void StageMasks(const step::StepDescriptor& step, kernels::SamplingRow* rows);
  LogprobArrays LogprobsIn(const kernels::Buffer& results) const;
  double* PooledIn(const kernels::Buffer& results) const;

  step::StepLimits limits_;
  kernels::Buffer staging_;
  std::shared_ptr<const kernels::Buffer> device_;
  size_t used_ = 0;                              // of both
  int32_t* ids_ = nullptr;                       // of the staged step's tokens, in device_
  std::vector<kernels::ScatterRun> token_runs_;  // reused
  // Sampled ids, then the step's log-probabilities: ids, values, ranks; then its pooled states.
  std::shared_ptr<const kernels::Buffer> results_;
  kernels::Buffer host_results_;
  size_t num_logprobs_ = 0;  // of the staged step
  size_t num_pools_ = 0;     // likewise
  kernels::Buffer host_logits_;
  size_t logits_taken_ = 0;
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_RUNTIME_STEP_BUFFERS_H_
