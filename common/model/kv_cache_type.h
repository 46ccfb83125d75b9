// Which KV cache types a model can use.
#ifndef TANDEM_COMMON_MODEL_KV_CACHE_TYPE_H_
#define TANDEM_COMMON_MODEL_KV_CACHE_TYPE_H_

#include "absl/status/status.h"
#include "common/model/spec.h"
#include "common/tensor/type.h"

namespace tandem::model {

// INVALID_ARGUMENT with both sizes if rows of K or V are not whole blocks of the type.
absl::Status CheckKvCacheType(const ModelSpec& spec, tensor::Type type);

}  // namespace tandem::model

#endif  // TANDEM_COMMON_MODEL_KV_CACHE_TYPE_H_
