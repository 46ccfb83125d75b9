// Bytes per token in the KV cache. Pure functions, thread-safe.
#ifndef TANDEM_COMMON_MODEL_KV_BYTES_H_
#define TANDEM_COMMON_MODEL_KV_BYTES_H_

#include <cstdint>

#include "common/model/shard.h"
#include "common/model/spec.h"
#include "common/tensor/type.h"

namespace tandem::model {

// Bytes per token in the cache of one rank: K and V rows of every layer of the group, or of all
// groups. With MLA there is one row, and V is a part of it. REQUIRES: CheckKvCacheType.
uint64_t KvBytesPerToken(const ModelSpec& spec, const ShardPlan& plan, const KvGroupSpec& group,
                         tensor::Type kv_type);
uint64_t KvBytesPerToken(const ModelSpec& spec, const ShardPlan& plan, tensor::Type kv_type);

}  // namespace tandem::model

#endif  // TANDEM_COMMON_MODEL_KV_BYTES_H_
