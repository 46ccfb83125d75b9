#include "worker/runtime/recurrent_states.h"

#include <limits>

#include "common/base/checked_size.h"
#include "common/base/status.h"
#include "common/model/state_bytes.h"

namespace tandem::worker {
namespace {

constexpr uint64_t kAlignment = 64;

// Bytes of an array of all slots.
uint64_t ArrayBytes(uint64_t values, uint32_t num_slots) {
  return (values * num_slots * sizeof(float) + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

uint64_t RecurrentStates::Bytes(const model::ModelSpec& spec, const model::ShardPlan& plan,
                                uint32_t num_slots) {
  if (!spec.delta_net.has_value()) return 0;
  const model::StateShape shape = model::StateShapeOf(spec, plan);
  const CheckedSize layer = CheckedSize(ArrayBytes(shape.conv_values, num_slots)) +
                            ArrayBytes(shape.matrix_values, num_slots);
  const CheckedSize all = layer * spec.delta_net->layers.size();
  return all.value().value_or(std::numeric_limits<uint64_t>::max());
}

absl::StatusOr<RecurrentStates> RecurrentStates::Create(const model::ModelSpec& spec,
                                                        const model::ShardPlan& plan,
                                                        uint32_t num_slots,
                                                        kernels::Backend& backend) {
  RecurrentStates states;
  states.layers_.resize(spec.num_layers);
  if (!spec.delta_net.has_value()) return states;
  const model::StateShape shape = model::StateShapeOf(spec, plan);
  TANDEM_ASSIGN_OR_RETURN(states.buffer_, backend.Allocate(Bytes(spec, plan, num_slots)));
  std::byte* at = states.buffer_.data();
  for (const uint32_t layer : spec.delta_net->layers) {
    states.layers_[layer].conv = reinterpret_cast<float*>(at);
    at += ArrayBytes(shape.conv_values, num_slots);
    states.layers_[layer].matrix = reinterpret_cast<float*>(at);
    at += ArrayBytes(shape.matrix_values, num_slots);
  }
  return states;
}

}  // namespace tandem::worker
