// What ops with a recurrent state read of a varlen batch.
#ifndef TANDEM_KERNELS_OPS_RECURRENT_BATCH_H_
#define TANDEM_KERNELS_OPS_RECURRENT_BATCH_H_

#include <cstdint>

#include "kernels/ops/array.h"

namespace tandem::kernels {

// Sequence s has rows [query_offsets[s], query_offsets[s+1]), the last of which is at position
// context_lens[s] - 1. Its state begins as load_slots[s] has it, or with zeros if the first row is
// at position 0; in the end slots[s] has the state after the last row, and save_slots[s], if
// save_after[s] > 0, the state after so many of the rows. load_slots[s] is slots[s] or a slot that
// the batch does not write; no slot is written twice. A sequence of context length 0 is padding: no
// slot is read or written, and its rows are zeros.
struct RecurrentBatch {
  uint32_t tokens;
  uint32_t num_seqs;
  const int32_t* query_offsets;  // (S + 1)
  const int32_t* context_lens;   // (S), this step's tokens included
  const int32_t* slots;          // (S)
  const int32_t* load_slots;     // (S)
  const int32_t* save_slots;     // (S)
  const int32_t* save_after;     // (S): 0 to the sequence's rows
  uint32_t num_slots;

  template <class Batch, class Visit>
  static void ForEachPointer(Batch& batch, Visit&& visit) {
    visit("query_offsets", batch.query_offsets, In(batch.num_seqs + 1));
    visit("context_lens", batch.context_lens, In(batch.num_seqs));
    visit("slots", batch.slots, In(batch.num_seqs));
    visit("load_slots", batch.load_slots, In(batch.num_seqs));
    visit("save_slots", batch.save_slots, In(batch.num_seqs));
    visit("save_after", batch.save_after, In(batch.num_seqs));
  }
};

}  // namespace tandem::kernels

#endif  // TANDEM_KERNELS_OPS_RECURRENT_BATCH_H_
