// DraftHeadEncoder: encodes a pass of the model's draft head, from the states that it reads to the
// guesses. One thread.
#ifndef TANDEM_WORKER_RUNTIME_DRAFT_HEAD_ENCODER_H_
#define TANDEM_WORKER_RUNTIME_DRAFT_HEAD_ENCODER_H_

#include <cstdint>
#include <vector>

#include "kernels/ops.h"
#include "worker/layers/context.h"
#include "worker/model/draft_head.h"
#include "worker/runtime/draft_buffers.h"
#include "worker/runtime/step_encoder.h"

namespace tandem::worker {

class DraftHeadEncoder {
 public:
  // Both belong to one model and must outlive this.
  DraftHeadEncoder(const DraftHead& head, const StepEncoder& encoder, uint32_t hidden_size)
      : head_(head), encoder_(encoder), hidden_size_(hidden_size) {}

  // `pages` has one entry per layer of the model, the head's last.
  void Encode(LayerContext& context, const DraftPass& pass,
              const std::vector<kernels::KvPages>& pages) const;

 private:
  const DraftHead& head_;
  const StepEncoder& encoder_;
  const uint32_t hidden_size_;
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_RUNTIME_DRAFT_HEAD_ENCODER_H_
