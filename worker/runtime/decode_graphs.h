// DecodeGraphs: decode steps captured once per batch size and replayed by one call
// (kernels::Graph).
//
// A graph holds the pointers, strides and counts of its capture, so a step can replay it if it is
// padded to the graph's batch size and its inputs are at the captured addresses:
//   - StepBuffers puts everything except block tables at offsets given by the batch size;
//   - block tables are uploaded at the step's own stride and copied to tables of the largest stride
//   that only graphs read.
// Padded sequences have one token at position 0, context length 0 (attention gives zeros and reads
// no table), slot -1 (not written) and a greedy sampling row whose sample is not used. Collectives
// are part of a graph. All ranks get the same steps and so replay the same graphs. One thread.
#ifndef TANDEM_WORKER_RUNTIME_DECODE_GRAPHS_H_
#define TANDEM_WORKER_RUNTIME_DECODE_GRAPHS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/step/descriptor.h"
#include "kernels/backend.h"
#include "worker/runtime/step_buffers.h"

namespace tandem::worker {

// 1, 2, 4, 8, 16, 24, 32, ... and max_seqs: ascending.
std::vector<uint32_t> GraphBatchSizes(uint32_t max_seqs);

// Whether all sequences decode, and every row requests a sample and nothing else.
bool IsReplayable(const step::StepDescriptor& step);

// `step` padded to `batch` sequences. REQUIRES: IsReplayable, or no sequences; no more than
// `batch`. Reuses the memory of `padded`.
void PadDecode(const step::StepDescriptor& step, uint32_t batch, step::StepDescriptor& padded);

class DecodeGraphs {
 public:
  // Encodes what a step computes.
  using EncodeStep = std::function<void(const Batch& batch, const HeadBatch& head)>;

  // Captures a graph for every batch size up to limits.max_seqs, the largest first: smaller ones
  // reuse its memory of the device's pool. Each size runs once before, on padding only, to trigger
  // first-run initialisation. Progress is logged. `buffers` outlives this.
  static absl::StatusOr<DecodeGraphs> Capture(const step::StepLimits& limits, StepBuffers& buffers,
                                              kernels::Backend& backend, const EncodeStep& encode);
  // Device memory for block tables. Launch records are allocated by the device, of unknown size:
  // they use the memory that DeviceBudget leaves free.
  static uint64_t DeviceBytes(const step::StepLimits& limits);

  // The step padded to the smallest graph that fits; null if none fits. Valid until the next call.
  const step::StepDescriptor* Pad(const step::StepDescriptor& step);
  // Encodes the replay of the step from Pad, staged and uploaded.
  void EncodeReplay(const StepBuffers::Staged& staged, kernels::Backend& backend) const;

 private:
  struct Entry {
    uint32_t batch = 0;
    StepBuffers::Staged inputs;  // as captured
    std::unique_ptr<kernels::Graph> graph;
  };

  // `no_tables`: empty for every slot.
  absl::Status CaptureOne(uint32_t batch, const step::BlockTables& no_tables, StepBuffers& buffers,
                          kernels::Backend& backend, const EncodeStep& encode);
  // The same inputs, with block tables at the graphs' addresses.
  Batch AtFixedTables(const Batch& batch) const;
  int32_t* Table(size_t group) const;

  step::StepLimits limits_;
  kernels::Buffer tables_;      // (groups, max_seqs, widest stride)
  std::vector<Entry> entries_;  // ascending by batch
  step::StepDescriptor padded_;
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_RUNTIME_DECODE_GRAPHS_H_
