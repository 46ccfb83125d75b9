#include "common/model/kv_cache_type.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/strings.h"

namespace tandem::model {

absl::Status CheckKvCacheType(const ModelSpec& spec, tensor::Type type) {
  const uint32_t block = tensor::Traits(type).block_values;
  if (spec.head_dim % block == 0 && spec.value_dim % block == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--kv-cache-type ", absl::AsciiStrToLower(Sv(tensor::Name(type))),
      " needs heads whose K and V sizes are multiples of ", block, ", the model's are ",
      spec.head_dim, " and ", spec.value_dim, ": use f16 or bf16"));
}

}  // namespace tandem::model
