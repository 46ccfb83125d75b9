// StepEncoder: encodes a step, from its staged inputs to samples, log-probabilities and pooled
// states: the decoder, the head slice by slice, sampling on rank 0, and the broadcast of the
// sampled ids.
//
// The same encoding serves a step that runs, the plan pass (shapes without data) and the capture of
// a decode graph. The caller makes copies to and from the host. One thread.
#ifndef TANDEM_WORKER_RUNTIME_STEP_ENCODER_H_
#define TANDEM_WORKER_RUNTIME_STEP_ENCODER_H_

#include <functional>
#include <vector>

#include "common/model/shard.h"
#include "common/model/spec.h"
#include "kernels/backend.h"
#include "worker/layers/context.h"
#include "worker/model/decoder.h"
#include "worker/runtime/step_buffers.h"

namespace tandem::worker {

// Destination of results, in device memory.
struct StepOutputs {
  int32_t* sampled = nullptr;  // (num_samples)
  LogprobArrays logprobs{};    // (num_logprobs)
  double* pooled = nullptr;    // (num_pools, hidden size)
  float* states = nullptr;     // (T, hidden size), on every rank; null: nobody reads them
  // Called while encoding, with the logits (num_rows, vocab) of each slice, on rank 0 only. May be
  // empty.
  std::function<void(const HeadSlice& slice, const float* logits)> on_logits{};
};

class StepEncoder {
 public:
  // All belong to one model and must outlive the encoder.
  StepEncoder(const Decoder& decoder, const model::ModelSpec& spec, const model::ShardPlan& plan)
      : decoder_(decoder), spec_(spec), plan_(plan) {}

  // `pages` and `states` as for Decoder::Encode.
  void Encode(LayerContext& context, const Batch& batch, const HeadBatch& head,
              const std::vector<kernels::KvPages>& pages, const std::vector<LayerStates>& states,
              const StepOutputs& out) const;
  // What follows the layers, of the model or of its draft head, with `output` of the same: all but
  // pools and states.
  void EncodeOutput(LayerContext& context, const OutputHead& output, const HeadBatch& head,
                    const Hidden& hidden, const StepOutputs& out) const;

 private:
  void EncodeStates(LayerContext& context, const Batch& batch, Hidden& hidden,
                    const StepOutputs& out) const;
  // Sums of final states, on rank 0.
  void EncodePools(LayerContext& context, const Batch& batch, const HeadBatch& head, Hidden& hidden,
                   const StepOutputs& out) const;
  void EncodeSlice(LayerContext& context, const OutputHead& output, const HeadBatch& head,
                   const HeadSlice& slice, const Hidden& hidden, const StepOutputs& out) const;

  const Decoder& decoder_;
  const model::ModelSpec& spec_;
  const model::ShardPlan& plan_;
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_RUNTIME_STEP_ENCODER_H_
