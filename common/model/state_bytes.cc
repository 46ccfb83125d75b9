#include "common/model/state_bytes.h"

namespace tandem::model {

StateShape StateShapeOf(const ModelSpec& spec, const ShardPlan& plan) {
  const DeltaNetSpec& net = *spec.delta_net;
  StateShape shape;
  shape.key_heads = plan.delta_key_heads.size();
  shape.value_heads = shape.key_heads * (net.value_heads / net.key_heads);
  shape.channels = (2 * shape.key_heads + shape.value_heads) * net.head_dim;
  shape.conv_values = uint64_t{net.conv_taps - 1} * shape.channels;
  shape.matrix_values = uint64_t{shape.value_heads} * net.head_dim * net.head_dim;
  return shape;
}

uint64_t StateBytesPerSequence(const ModelSpec& spec, const ShardPlan& plan) {
  if (!spec.delta_net.has_value()) return 0;
  const StateShape shape = StateShapeOf(spec, plan);
  return spec.delta_net->layers.size() * (shape.conv_values + shape.matrix_values) * sizeof(float);
}

}  // namespace tandem::model
