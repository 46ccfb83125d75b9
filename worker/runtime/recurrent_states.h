// RecurrentStates: the states of recurrent layers in one allocation, one of each layer per sequence
// slot, then one per snapshot, in F32. Ops clear, load and save them (kernels::RecurrentBatch).
//
// Layout: layer after layer; of a layer first the convolution's inputs of all slots, then the
// matrices of all slots. One thread.
#ifndef TANDEM_WORKER_RUNTIME_RECURRENT_STATES_H_
#define TANDEM_WORKER_RUNTIME_RECURRENT_STATES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/shard.h"
#include "common/model/spec.h"
#include "kernels/backend.h"
#include "worker/model/layer_cache.h"

namespace tandem::worker {

class RecurrentStates {
 public:
  // Nothing is allocated for a model without recurrent layers.
  static absl::StatusOr<RecurrentStates> Create(const model::ModelSpec& spec,
                                                const model::ShardPlan& plan, uint32_t num_slots,
                                                kernels::Backend& backend);
  // Memory allocated by Create; saturates.
  static uint64_t Bytes(const model::ModelSpec& spec, const model::ShardPlan& plan,
                        uint32_t num_slots);

  // One entry per layer.
  const std::vector<LayerStates>& layers() const { return layers_; }

 private:
  kernels::Buffer buffer_;
  std::vector<LayerStates> layers_;
};

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_RUNTIME_RECURRENT_STATES_H_
