#include "worker/runtime/draft_head_encoder.h"

namespace tandem::worker {

void DraftHeadEncoder::Encode(LayerContext& context, const DraftPass& pass,
                              const std::vector<kernels::KvPages>& pages) const {
  const uint32_t tokens = pass.batch.tokens;
  float* const states = context.arena.TakeActivations(size_t{tokens} * hidden_size_);
  context.backend.Encode(kernels::GatherRowsParams{.src = pass.all_states,
                                                   .rows = pass.state_rows,
                                                   .count = tokens,
                                                   .dim = hidden_size_,
                                                   .out = states});
  Hidden hidden = head_.Encode(context, pass.batch, states, pages);
  if (pass.own_states != nullptr) {
    const size_t mark = context.arena.used();
    context.backend.Encode(
        kernels::CopyRowsParams{.x = head_.output().EncodeStates(context, tokens, hidden),
                                .x_stride = hidden_size_,
                                .rows = tokens,
                                .dim = hidden_size_,
                                .y = pass.own_states,
                                .y_stride = hidden_size_});
    context.arena.Rewind(mark);
  }
  encoder_.EncodeOutput(context, head_.output(), pass.head, hidden, {.sampled = pass.guesses});
}

}  // namespace tandem::worker
