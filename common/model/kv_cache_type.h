// The types that the rows of the KV cache can have, and which models can use them.
#ifndef TANDEM_COMMON_MODEL_KV_CACHE_TYPE_H_
#define TANDEM_COMMON_MODEL_KV_CACHE_TYPE_H_

#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/model/spec.h"
#include "common/tensor/type.h"

namespace tandem::model {

// "f32", "f16", "bf16" or "q8_0"; INVALID_ARGUMENT for another name.
absl::StatusOr<tensor::Type> ParseKvCacheType(std::string_view name);

// INVALID_ARGUMENT with both sizes where rows of K or of V are not whole blocks of the type.
absl::Status CheckKvCacheType(const ModelSpec& spec, tensor::Type type);

}  // namespace tandem::model

#endif  // TANDEM_COMMON_MODEL_KV_CACHE_TYPE_H_
