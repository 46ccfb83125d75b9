// What ops with a recurrent state read of a varlen batch.
#ifndef TANDEM_KERNELS_OPS_RECURRENT_BATCH_H_
#define TANDEM_KERNELS_OPS_RECURRENT_BATCH_H_

#include <cstdint>

#include "kernels/ops/array.h"

namespace tandem::kernels {

// Sequence s has rows [query_offsets[s], query_offsets[s+1]), the last of which is at position
// context_lens[s] - 1, and its state is that of slots[s], no other sequence's. If the first row is
// at position 0 the state begins with zeros, whatever the slot holds; at the end the slot holds the
// state after the last row. A sequence of context length 0 is padding: its slot is neither read nor
// written, and its rows are zeros.
struct RecurrentBatch {
  uint32_t tokens;
  uint32_t num_seqs;
  const int32_t* query_offsets;  // (S + 1)
  const int32_t* context_lens;   // (S), this step's tokens included
  const int32_t* slots;          // (S)
  uint32_t num_slots;

  template <class Batch, class Visit>
  static void ForEachPointer(Batch& batch, Visit&& visit) {
    visit("query_offsets", batch.query_offsets, In(batch.num_seqs + 1));
    visit("context_lens", batch.context_lens, In(batch.num_seqs));
    visit("slots", batch.slots, In(batch.num_seqs));
  }
};

}  // namespace tandem::kernels

#endif  // TANDEM_KERNELS_OPS_RECURRENT_BATCH_H_
