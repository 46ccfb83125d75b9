// StepEncoder: what a step computes, from its staged inputs to samples and log-probabilities: the
// decoder, the head slice by slice, sampling on rank 0, and the broadcast of the sampled ids.
//
// The same encoding serves a step that runs, the plan pass (shapes without data) and the capture of
// a decode graph. Copies to and from the host are the caller's. One thread.
#ifndef TANDEM_WORKER_RUNTIME_STEP_ENCODER_H_
#define TANDEM_WORKER_RUNTIME_STEP_ENCODER_H_

#include <functional>
#include <vector>

#include "kernels/backend.h"
#include "worker/layers/context.h"
#include "worker/model/loaded_model.h"
#include "worker/runtime/step_buffers.h"

namespace tandem::worker {

// Where results go, in device memory.
struct StepOutputs {
  int32_t* sampled = nullptr;  // (num_samples)
  LogprobArrays logprobs{};    // (num_logprobs)
  // Called while encoding, with the logits (num_rows, vocab) of each slice: rank 0 alone. May be
  // empty.
  std::function<void(const HeadSlice& slice, const float* logits)> on_logits{};
};

class StepEncoder {
 public:
  // `model` must outlive the encoder.
  explicit StepEncoder(LoadedModel& model) : model_(model) {}

  // `pages` has one entry per layer.
  void Encode(LayerContext& context, const Batch& batch, const HeadBatch& head,
              const std::vector<kernels::KvPages>& pages, const StepOutputs& out) const;

 private:
  void EncodeSlice(LayerContext& context, const HeadBatch& head, const HeadSlice& slice,
                   const Decoder::Hidden& hidden, const StepOutputs& out) const;

  LoadedModel& model_;
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_RUNTIME_STEP_ENCODER_H_
