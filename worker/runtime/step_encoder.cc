#include "worker/runtime/step_encoder.h"

namespace tandem::worker {

void StepEncoder::Encode(LayerContext& context, const Batch& batch, const HeadBatch& head,
                         const std::vector<kernels::KvPages>& pages,
                         const std::vector<LayerStates>& states, const StepOutputs& out) const {
  Hidden hidden = decoder_.Encode(context, batch, pages, states);
  const size_t mark = context.arena.used();
  if (out.states != nullptr) {
    EncodeStates(context, batch, hidden, out);
    context.arena.Rewind(mark);
  }
  if (head.num_pools > 0 && plan_.rank == 0) {
    EncodePools(context, batch, head, hidden, out);
    context.arena.Rewind(mark);
  }
  EncodeOutput(context, decoder_.output(), head, hidden, out);
}

void StepEncoder::EncodeOutput(LayerContext& context, const OutputHead& output,
                               const HeadBatch& head, const Hidden& hidden,
                               const StepOutputs& out) const {
  const size_t mark = context.arena.used();
  for (const HeadSlice& slice : head.slices) {
    EncodeSlice(context, output, head, slice, hidden, out);
    context.arena.Rewind(mark);  // the stream runs in order: the next slice may reuse the memory
  }
  if (head.num_samples > 0 && context.ranks() > 1) {
    context.comm->Broadcast(out.sampled, head.num_samples * sizeof(int32_t), /*root=*/0);
  }
}

void StepEncoder::EncodeStates(LayerContext& context, const Batch& batch, Hidden& hidden,
                               const StepOutputs& out) const {
  const uint32_t dim = spec_.hidden_size;
  context.backend.Encode(
      kernels::CopyRowsParams{.x = decoder_.output().EncodeStates(context, batch.tokens, hidden),
                              .x_stride = dim,
                              .rows = batch.tokens,
                              .dim = dim,
                              .y = out.states,
                              .y_stride = dim});
}

void StepEncoder::EncodePools(LayerContext& context, const Batch& batch, const HeadBatch& head,
                              Hidden& hidden, const StepOutputs& out) const {
  const float* const states = decoder_.output().EncodeStates(context, batch.tokens, hidden);
  context.backend.Encode(kernels::PoolRowsParams{.x = states,
                                                 .ranges = head.pools,
                                                 .count = head.num_pools,
                                                 .dim = spec_.hidden_size,
                                                 .out = out.pooled});
}

void StepEncoder::EncodeSlice(LayerContext& context, const OutputHead& output,
                              const HeadBatch& head, const HeadSlice& slice, const Hidden& hidden,
                              const StepOutputs& out) const {
  const float* logits = output.EncodeLogits(context, hidden, slice.tokens, slice.num_rows);
  if (plan_.rank != 0) return;
  if (out.on_logits) out.on_logits(slice, logits);
  const uint32_t vocab = spec_.vocab_size;
  if (slice.num_samples > 0) {
    context.backend.Encode(kernels::SampleParams{.logits = logits,
                                                 .vocab = vocab,
                                                 .rows = slice.sampling,
                                                 .count = slice.num_samples,
                                                 .adjustments = head.adjustments,
                                                 .masks = head.masks,
                                                 .out = out.sampled + slice.first_sample});
  }
  if (slice.num_logprobs == 0) return;
  const LogprobArrays logprobs = out.logprobs.From(slice.first_logprob);
  context.backend.Encode(kernels::LogProbsParams{.logits = logits,
                                                 .vocab = vocab,
                                                 .rows = slice.logprob_rows,
                                                 .count = slice.num_logprob_rows,
                                                 .ids = head.logprob_ids,
                                                 .sampled = out.sampled,
                                                 .out_count = slice.num_logprobs,
                                                 .out_ids = logprobs.ids,
                                                 .out_logprobs = logprobs.logprobs,
                                                 .out_ranks = logprobs.ranks});
}

}  // namespace tandem::worker
