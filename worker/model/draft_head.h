// DraftHead: predicts one token further than the model it belongs to, from the model's hidden state
// and the token that was sampled from it (multi-token prediction: DeepSeek-V3, arXiv:2412.19437,
// section 2.2; NextN in GGUF files). It reads the spec, never an architecture's name.
//
// At position p, of the token x_p and the state h of position p - 1:
//
//     u = projection [norm(embedding of x_p); norm(h)]
//     one layer of full attention on u, with K and V of its own, at position p
//     g = norm(u), logits = head g: they predict x_(p+1)
//
// h is what OutputHead::EncodeStates of the model gives (zeros at p = 0). For a guess further, g
// takes its place: K and V made so are to be written again once the model's states are there.
//
// K and V are those of layer spec.num_layers, which belongs to the model's full-attention group: it
// has the same block tables and slots. Embedding, final norm and output matrix are the model's
// where the file has no others for the head. The projection is the same on all ranks; everything
// else is cut as in the model.
#ifndef TANDEM_WORKER_MODEL_DRAFT_HEAD_H_
#define TANDEM_WORKER_MODEL_DRAFT_HEAD_H_

#include <cstdint>
#include <vector>

#include "worker/layers/context.h"
#include "worker/layers/linear.h"
#include "worker/layers/norm.h"
#include "worker/layers/vocabulary.h"
#include "worker/model/batch.h"
#include "worker/model/decoder_layer.h"
#include "worker/model/output_head.h"

namespace tandem::worker {

class DraftHead {
 public:
  // REQUIRES: spec.has_draft_head.
  DraftHead(const ModelParts& parts, std::vector<uint32_t> vocab_starts);

  // All but the output. `states` (T, hidden) are those of each token's predecessor; `pages` has one
  // entry per layer, the head's last.
  Hidden Encode(LayerContext& context, const Batch& batch, float* states,
                const std::vector<kernels::KvPages>& pages) const;
  // Logits, and the states g for further guesses.
  const OutputHead& output() const { return output_; }

 private:
  // Half of the projection's input, at `to`, rows 2 * hidden apart.
  void EncodeInput(LayerContext& context, const Norm& norm, uint32_t tokens, float* x,
                   float* to) const;

  uint32_t hidden_;
  VocabParallelEmbedding embedding_;
  Norm embedding_norm_;
  Norm state_norm_;
  ColumnParallelLinear projection_;
  DecoderLayer layer_;
  OutputHead output_;
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_MODEL_DRAFT_HEAD_H_
