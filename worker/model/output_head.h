// OutputHead: the end of a model, and of its draft head: final norm, vocabulary-parallel head,
// soft-capping.
#ifndef TANDEM_WORKER_MODEL_OUTPUT_HEAD_H_
#define TANDEM_WORKER_MODEL_OUTPUT_HEAD_H_

#include <cstdint>
#include <vector>

#include "worker/layers/context.h"
#include "worker/layers/norm.h"
#include "worker/layers/vocabulary.h"
#include "worker/model/decoder_layer.h"

namespace tandem::worker {

// The model's output matrix: the embedding's where they are tied.
const kernels::Weight& OutputMatrix(const ModelParts& parts);

class OutputHead {
 public:
  // `head` has this rank's rows of the vocabulary, which begin at vocab_starts[rank].
  OutputHead(const ModelParts& parts, const Norm& norm, const kernels::Weight& head,
             std::vector<uint32_t> vocab_starts);

  // Logits (count, vocab) on rank 0, null on other ranks, of the tokens rows[0, count) in device
  // memory. A row's logits do not depend on the others, so a step's rows may be computed in slices.
  float* EncodeLogits(LayerContext& context, const Hidden& hidden, const int32_t* rows,
                      uint32_t count) const;
  // The normed states (T, hidden) of all tokens: what a draft head reads. Adds the delta, if there
  // is one, to the residual: `hidden` has none from here on, and its logits stay the same.
  // They take `hidden.spare` where there is one, else room of their own.
  float* EncodeStates(LayerContext& context, uint32_t tokens, Hidden& hidden) const;

 private:
  int rank_;
  float logit_softcap_;
  Norm norm_;
  VocabParallelHead head_;
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_MODEL_OUTPUT_HEAD_H_
