#include "common/model/memory_plan.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/check.h"
#include "common/base/checked_size.h"
#include "common/model/human_bytes.h"

namespace tandem::model {

uint64_t KvBytesPerToken(const ModelSpec& spec, const ShardPlan& plan, const KvGroupSpec& group,
                         tensor::Type kv_type) {
  // With MLA V is a part of K's row.
  const uint64_t value_bytes = spec.mla.has_value() ? 0 : tensor::RowBytes(kv_type, spec.value_dim);
  return group.layers.size() * plan.kv_heads.size() *
         (tensor::RowBytes(kv_type, spec.head_dim) + value_bytes);
}

uint64_t KvBytesPerToken(const ModelSpec& spec, const ShardPlan& plan, tensor::Type kv_type) {
  uint64_t bytes = 0;
  for (const KvGroupSpec& group : spec.kv_groups)
    bytes += KvBytesPerToken(spec, plan, group, kv_type);
  return bytes;
}

absl::StatusOr<MemoryPlan> MakeMemoryPlan(const MemoryRequest& request) {
  const CheckedSize block = CheckedSize(request.kv_bytes_per_token) * request.block_tokens;
  if (!block.FitsIn(std::numeric_limits<int64_t>::max()) || *block.value() == 0) {
    return absl::InvalidArgumentError(absl::StrCat("a KV block of ", request.block_tokens,
                                                   " tokens of ", request.kv_bytes_per_token,
                                                   " bytes has no usable size"));
  }
  MemoryPlan plan;
  plan.weights_bytes = request.weights_bytes;
  plan.activation_bytes = request.activation_bytes;
  plan.block_tokens = request.block_tokens;
  plan.bytes_per_block = *block.value();
  plan.num_blocks = request.num_blocks.value_or(request.kv_bytes / plan.bytes_per_block);
  if (plan.num_blocks == 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no KV block fits: one of ", plan.block_tokens, " tokens needs ",
                     plan.bytes_per_block, " bytes, the KV cache was given ", request.kv_bytes));
  }
  const CheckedSize total = CheckedSize(plan.num_blocks) * plan.bytes_per_block +
                            plan.weights_bytes + plan.activation_bytes;
  if (!total.FitsIn(std::numeric_limits<int64_t>::max())) {
    return absl::InvalidArgumentError(absl::StrCat(plan.num_blocks, " KV blocks of ",
                                                   plan.bytes_per_block,
                                                   " bytes are more than any memory holds"));
  }
  if (request.available_bytes.has_value() && *total.value() > *request.available_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("not enough memory: needed ", plan.total_bytes(), " bytes (weights ",
                     plan.weights_bytes, ", activations ", plan.activation_bytes, ", KV cache ",
                     plan.kv_bytes(), "), available ", *request.available_bytes));
  }
  return plan;
}

std::string MemoryPlan::Text() const {
  std::string text;
  absl::StrAppendFormat(&text, "weights      %s\n", HumanBytes(weights_bytes));
  absl::StrAppendFormat(&text, "activations  %s\n", HumanBytes(activation_bytes));
  absl::StrAppendFormat(&text, "KV cache     %s (%u blocks of %u tokens, %s each)\n",
                        HumanBytes(kv_bytes()), num_blocks, block_tokens,
                        HumanBytes(bytes_per_block));
  absl::StrAppendFormat(&text, "total        %s\n", HumanBytes(total_bytes()));
  return text;
}

}  // namespace tandem::model
