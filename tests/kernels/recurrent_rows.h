// Sequences of a batch for ops with a recurrent state.
#ifndef TANDEM_TESTS_KERNELS_RECURRENT_ROWS_H_
#define TANDEM_TESTS_KERNELS_RECURRENT_ROWS_H_

#include <cstdint>
#include <vector>

#include "kernels/ops.h"
#include "tests/kernels/backends.h"

namespace tandem::kernels {

// A chunk of `rows` rows that ends at position context_len - 1, or padding if that is 0.
struct RecurrentRows {
  int32_t rows;
  int32_t context_len;
  int32_t slot;
  int32_t load_slot = -1;  // -1: slot
  int32_t save_slot = 0;
  int32_t save_after = 0;
};

inline RecurrentBatch PutBatch(Rig& rig, const std::vector<RecurrentRows>& sequences,
                               uint32_t num_slots) {
  std::vector<int32_t> offsets = {0}, lens, slots, load_slots, save_slots, save_after;
  for (const RecurrentRows& sequence : sequences) {
    offsets.push_back(offsets.back() + sequence.rows);
    lens.push_back(sequence.context_len);
    slots.push_back(sequence.slot);
    load_slots.push_back(sequence.load_slot >= 0 ? sequence.load_slot : sequence.slot);
    save_slots.push_back(sequence.save_slot);
    save_after.push_back(sequence.save_after);
  }
  return {.tokens = static_cast<uint32_t>(offsets.back()),
          .num_seqs = static_cast<uint32_t>(sequences.size()),
          .query_offsets = rig.Put(offsets),
          .context_lens = rig.Put(lens),
          .slots = rig.Put(slots),
          .load_slots = rig.Put(load_slots),
          .save_slots = rig.Put(save_slots),
          .save_after = rig.Put(save_after),
          .num_slots = num_slots};
}

// The rows [first, first + count) of a matrix.
inline std::vector<float> SomeRows(const std::vector<float>& all, size_t cols, size_t first,
                                   size_t count) {
  const auto begin = all.begin() + static_cast<ptrdiff_t>(first * cols);
  return {begin, begin + static_cast<ptrdiff_t>(count * cols)};
}

}  // namespace tandem::kernels

#endif  // TANDEM_TESTS_KERNELS_RECURRENT_ROWS_H_
