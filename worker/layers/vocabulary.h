// Vocabulary-parallel embedding and head: every rank holds a slice of the vocabulary's rows.
#ifndef TANDEM_WORKER_LAYERS_VOCABULARY_H_
#define TANDEM_WORKER_LAYERS_VOCABULARY_H_

#include <cstdint>
#include <vector>

#include "kernels/ops.h"
#include "worker/layers/context.h"
#include "worker/layers/norm.h"

namespace tandem::worker {

// Ids outside the rank's slice give zeros; an all-reduce completes the row (one rank's row plus
// zeros: exact).
class VocabParallelEmbedding {
 public:
  VocabParallelEmbedding() = default;
  VocabParallelEmbedding(kernels::Weight table, uint32_t vocab_begin, float scale)
      : table_(table), vocab_begin_(vocab_begin), scale_(scale) {}

  // ids (T) -> out (T, hidden): the rows times the scale.
  void Encode(LayerContext& context, const int32_t* ids, uint32_t tokens, float* out) const;

 private:
  kernels::Weight table_;
  uint32_t vocab_begin_ = 0;
  float scale_ = 1.0f;
};

// Logits of the other ranks' slices are gathered to rank 0, which puts them beside its own.
class VocabParallelHead {
 public:
  VocabParallelHead() = default;
  // `starts` has ranks + 1 entries: rank r holds vocabulary rows [starts[r], starts[r + 1]).
  VocabParallelHead(kernels::Weight head, std::vector<uint32_t> starts);

  uint32_t vocab_size() const { return starts_.back(); }
  // x (rows, hidden) -> logits (rows, vocab) on rank 0; null on other ranks.
  float* Encode(LayerContext& context, const NormedRows& x, uint32_t rows, int rank) const;

 private:
  kernels::Weight head_;
  std::vector<uint32_t> starts_;
  uint32_t slice_max_ = 0;
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_LAYERS_VOCABULARY_H_
