// DecodeGraphs: decode steps captured once per batch size and replayed by one call
// (kernels::Graph).
//
// A graph holds the pointers, strides and counts of its capture, so a step can replay it if it is
// padded to the graph's batch size and its inputs are at the captured addresses:
//   - StepBuffers puts everything that a graph reads at offsets given by the batch size;
//   - block tables never move (DeviceTables).
// A step's update of the block tables runs before its graph. Padded sequences have one token at
// position 0, context length 0 (attention gives zeros and reads no table), KV slot -1 (not written)
// and a greedy sampling row whose sample is not used. Collectives are part of a graph. All ranks
// get the same steps and so replay the same graphs. One thread.
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

// Every size up to 8, multiples of 8 up to 64, eight sizes per doubling from there on, and
// max_seqs: ascending. Up to 8 a row costs most, as kernels take exactly so many; beyond, padding
// adds less than 8 rows or an eighth.
std::vector<uint32_t> GraphBatchSizes(uint32_t max_seqs);

// Device memory of a node of a graph, launch record and parameters: an estimate, from above. What
// graphs really took is logged.
inline constexpr uint64_t kGraphNodeBytes = 4096;

// Whether all sequences decode, every row requests a sample and nothing else but a guess, which is
// made outside of the graph, nothing is pooled, and no sequence has an adapter.
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
  // first-run initialisation. Progress, and what they take of the device's memory, are logged.
  // `tables` and `buffers` outlive this.
  static absl::StatusOr<DecodeGraphs> Capture(const step::StepLimits& limits,
                                              const DeviceTables& tables, StepBuffers& buffers,
                                              kernels::Backend& backend, const EncodeStep& encode);

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

  absl::Status CaptureOne(uint32_t batch, const step::StepLimits& limits,
                          const DeviceTables& tables, StepBuffers& buffers,
                          kernels::Backend& backend, const EncodeStep& encode);

  std::vector<Entry> entries_;  // ascending by batch
  step::StepDescriptor padded_;
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_RUNTIME_DECODE_GRAPHS_H_
