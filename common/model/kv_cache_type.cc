#include "common/model/kv_cache_type.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/strings.h"

namespace tandem::model {

absl::StatusOr<tensor::Type> ParseKvCacheType(std::string_view name) {
  if (name == "f32") return tensor::Type::kF32;
  if (name == "f16") return tensor::Type::kF16;
  if (name == "bf16") return tensor::Type::kBF16;
  if (name == "q8_0") return tensor::Type::kQ8_0;
  return absl::InvalidArgumentError(
      absl::StrCat("--kv-cache-type is '", Sv(name), "', it must be one of f32, f16, bf16, q8_0"));
}

absl::Status CheckKvCacheType(const ModelSpec& spec, tensor::Type type) {
  const uint32_t block = tensor::Traits(type).block_values;
  if (spec.head_dim % block == 0 && spec.value_dim % block == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--kv-cache-type ", absl::AsciiStrToLower(Sv(tensor::Name(type))),
      " needs heads whose K and V sizes are multiples of ", block, ", the model's are ",
      spec.head_dim, " and ", spec.value_dim, ": use f16 or bf16"));
}

}  // namespace tandem::model
