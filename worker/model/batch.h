// Batch: a step's inputs to the layers, in device memory. T = tokens, S = sequences.
#ifndef TANDEM_WORKER_MODEL_BATCH_H_
#define TANDEM_WORKER_MODEL_BATCH_H_

#include <cstdint>
#include <vector>

#include "worker/layers/context.h"

namespace tandem::worker {

// One KV group's view of a batch.
struct GroupBatch {
  const int32_t* block_tables = nullptr;  // (any, table_stride)
  const int32_t* slots = nullptr;         // (T)
};

// A batch's view of recurrent states (kernels::RecurrentBatch): table_rows are the slots.
struct BatchStates {
  const int32_t* load_slots = nullptr;  // (S)
  const int32_t* save_slots = nullptr;  // (S)
  const int32_t* save_after = nullptr;  // (S)
  uint32_t num_slots = 0;               // snapshots included
  bool operator==(const BatchStates&) const = default;
};

struct Batch {
  uint32_t tokens = 0;
  uint32_t num_seqs = 0;
  uint32_t max_query_len = 0;
  uint32_t max_context_len = 0;
  const int32_t* ids = nullptr;            // (T)
  const int32_t* positions = nullptr;      // (T)
  const int32_t* query_offsets = nullptr;  // (S + 1)
  const int32_t* context_lens = nullptr;   // (S)
  const int32_t* table_rows = nullptr;     // (S): of every group's block_tables
  uint32_t table_stride = 0;
  BatchStates states;
  std::vector<GroupBatch> groups;
  std::vector<AdapterRun> adapter_runs;  // ascending; tokens of no run have no adapter

  // LayerContext::lengths: with one token per sequence, contexts are those of the tokens.
  const int32_t* RowLengths() const {
    return max_query_len == 1 && tokens == num_seqs ? context_lens : nullptr;
  }
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_MODEL_BATCH_H_
