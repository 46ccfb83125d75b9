// DecodeGraphs: decode steps that were encoded once, per batch size, and are run again by one call
// (kernels::Graph).
//
// A graph holds pointers, strides and counts as they were when it was captured, so a step fits it
// when it is padded to the graph's batch size and its inputs stand where they stood then:
//   - StepBuffers puts all but block tables at places that follow from the batch size;
//   - block tables are uploaded as narrow as the step allows, like any step's, and spread to
//     tables of the largest stride that only graphs read.
// Padded sequences have one token at position 0, context length 0 (attention gives zeros and reads
// no table), slot -1 (written nowhere) and a greedy sampling row whose sample is not used.
// Collectives are part of a graph. All ranks see the same steps and so take the same graphs. One
// thread.
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

// Whether a step is all decode, and of every row a sample and nothing else is wanted.
bool IsReplayable(const step::StepDescriptor& step);

// `step` with padded sequences behind its own, `batch` in all. REQUIRES: IsReplayable, or no
// sequences at all; no more than `batch`. Memory of `padded` is used again.
void PadDecode(const step::StepDescriptor& step, uint32_t batch, step::StepDescriptor& padded);

class DecodeGraphs {
 public:
  // Encodes what a step computes.
  using EncodeStep = std::function<void(const Batch& batch, const HeadBatch& head)>;

  // Captures a graph for every batch size up to limits.max_seqs, the largest first: what it takes
  // of the device's pool serves the smaller ones too. Each size runs once before, on padding alone,
  // so that whatever a first run makes is there. Progress goes to the log. `buffers` outlives this.
  static absl::StatusOr<DecodeGraphs> Capture(const step::StepLimits& limits, StepBuffers& buffers,
                                              kernels::Backend& backend, const EncodeStep& encode);
  // Device memory for block tables. Launch records are the device's own and not known before they
  // are made: they come out of what DeviceBudget leaves free.
  static uint64_t DeviceBytes(const step::StepLimits& limits);

  // The step padded to the smallest graph that takes it; null where none does. Valid until the next
  // call.
  const step::StepDescriptor* Pad(const step::StepDescriptor& step);
  // Encodes the run of what Pad gave, staged and uploaded.
  void EncodeReplay(const StepBuffers::Staged& staged, kernels::Backend& backend) const;

 private:
  struct Entry {
    uint32_t batch = 0;
    StepBuffers::Staged inputs;  // as captured
    std::unique_ptr<kernels::Graph> graph;
  };

  // `no_tables`: of every slot empty.
  absl::Status CaptureOne(uint32_t batch, const step::BlockTables& no_tables, StepBuffers& buffers,
                          kernels::Backend& backend, const EncodeStep& encode);
  // The same inputs, with block tables where graphs read them.
  Batch AtFixedTables(const Batch& batch) const;
  int32_t* Table(size_t group) const;

  step::StepLimits limits_;
  kernels::Buffer tables_;      // (groups, max_seqs, widest stride)
  std::vector<Entry> entries_;  // ascending by batch
  step::StepDescriptor padded_;
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_RUNTIME_DECODE_GRAPHS_H_
