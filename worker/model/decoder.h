// Decoder: the generic transformer. It reads the spec, never an architecture's name.
//
// Encodes one step on the rank's backend: embedding, layers, output of the requested rows. Pre-norm
// decoder as in Llama 2 (https://arxiv.org/abs/2307.09288); with post-norms as in Gemma 2
// (https://arxiv.org/abs/2408.00118).
#ifndef TANDEM_WORKER_MODEL_DECODER_H_
#define TANDEM_WORKER_MODEL_DECODER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "common/model/spec.h"
#include "kernels/ops.h"
#include "worker/layers/context.h"
#include "worker/layers/vocabulary.h"
#include "worker/model/batch.h"
#include "worker/model/decoder_layer.h"
#include "worker/model/layer_inputs.h"
#include "worker/model/output_head.h"

namespace tandem::worker {

class Decoder {
 public:
  // Borrows everything: what `parts` refers to must outlive the decoder.
  Decoder(const ModelParts& parts, std::vector<uint32_t> vocab_starts);

  // All but the output. `pages` has one entry per layer and one of the draft head, if it is loaded;
  // `states` one per layer.
  Hidden Encode(LayerContext& context, const Batch& batch,
                const std::vector<kernels::KvPages>& pages,
                const std::vector<LayerStates>& states) const;
  const OutputHead& output() const { return output_; }

 private:
  void EncodeEmbedding(LayerContext& context, const Batch& batch, const Hidden& hidden) const;
  // What follows a layer's feed-forward block: its own input, and the scale of its output. Returns
  // what the next norm adds: hidden.delta, or null where it is part of the residual already.
  float* EncodeLayerEnd(LayerContext& context, uint32_t layer, uint32_t tokens,
                        const float* layer_inputs, const Hidden& hidden) const;

  const model::ModelSpec& spec_;
  const bool adapts_;  // adapters are loaded
  VocabParallelEmbedding embedding_;
  kernels::Weight positions_;  // of learned positions
  std::optional<LayerInputs> layer_inputs_;
  std::vector<DecoderLayer> layers_;
  OutputHead output_;
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_MODEL_DECODER_H_
