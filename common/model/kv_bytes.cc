#include "common/model/kv_bytes.h"

namespace tandem::model {

uint64_t KvBytesPerToken(const ModelSpec& spec, const ShardPlan& plan, const KvGroupSpec& group,
                         tensor::Type kv_type) {
  const HeadSizes heads = spec.HeadsOf(group);
  const uint64_t value_bytes =
      spec.mla.has_value() ? 0 : tensor::RowBytes(kv_type, heads.value_dim);
  return group.layers.size() * KvHeadRange(spec, plan, heads).size() *
         (tensor::RowBytes(kv_type, heads.head_dim) + value_bytes);
}

uint64_t KvBytesPerToken(const ModelSpec& spec, const ShardPlan& plan, tensor::Type kv_type) {
  uint64_t bytes = 0;
  for (const KvGroupSpec& group : spec.kv_groups)
    bytes += KvBytesPerToken(spec, plan, group, kv_type);
  return bytes;
}

}  // namespace tandem::model
