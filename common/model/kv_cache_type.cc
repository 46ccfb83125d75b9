#include "common/model/kv_cache_type.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/strings.h"

namespace tandem::model {

absl::Status CheckKvCacheType(const ModelSpec& spec, tensor::Type type) {
  const uint32_t block = tensor::Traits(type).block_values;
  for (const KvGroupSpec& group : spec.kv_groups) {
    const HeadSizes heads = spec.HeadsOf(group);
    if (heads.head_dim % block == 0 && heads.value_dim % block == 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "--kv-cache-type ", absl::AsciiStrToLower(Sv(tensor::Name(type))),
        " needs heads whose K and V sizes are multiples of ", block, ", the model's are ",
        heads.head_dim, " and ", heads.value_dim, ": use f16 or bf16"));
  }
  return absl::OkStatus();
}

}  // namespace tandem::model
