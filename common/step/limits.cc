#include "common/step/limits.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/config/worker_config.h"
#include "common/kv/blocks.h"
#include "common/step/codec.h"

namespace tandem::step {
namespace {

// Sections count their bytes in 32 bits, protobuf messages in 31.
constexpr size_t kMostFrameBytes = size_t{1} << 30;

}  // namespace

StepLimits StepLimits::Of(const config::WorkerConfig& config) {
  return {.max_tokens = config.limits.max_num_batched_tokens,
          .max_seqs = config.limits.max_num_seqs,
          .max_model_len = config.model.spec.max_model_len,
          .block_size = config.cache.block_size,
          .num_adapters = static_cast<uint32_t>(config.model.lora_modules.size()),
          .max_result_bytes = config.transport.max_result_bytes.bytes};
}

uint32_t StepLimits::MaxPools() const {
  if (hidden_size == 0) return 0;
  const size_t most = max_result_bytes / PooledBytes(1, hidden_size);
  return static_cast<uint32_t>(std::min<size_t>({most, max_seqs, kMaxPools}));
}

uint32_t StepLimits::MaxTableBlocks() const { return kv::BlocksFor(max_model_len, block_size); }

// The tables of admitted sequences, and the blocks that the step's tokens begin in running ones.
size_t StepLimits::MaxAppendedBlocks() const {
  const size_t table = MaxTableBlocks();
  const size_t begun = size_t{max_tokens} / block_size + max_seqs;
  return std::max<size_t>(kMaxAdmittedBlocks, model::kMaxKvGroups * table) +
         model::kMaxKvGroups * begun;
}

size_t StepLimits::MaxFrameBytes() const {
  return std::max(MaxDescriptorBytes(), max_result_bytes);
}

absl::Status StepLimits::CheckFrameBytes() const {
  if (MaxFrameBytes() <= kMostFrameBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--max-num-seqs ", max_seqs, ", --max-num-batched-tokens ", max_tokens,
      " and --max-model-len ", max_model_len, " in blocks of ", block_size,
      " tokens: a step may take ", MaxFrameBytes(), " bytes, at most ", kMostFrameBytes, " fit"));
}

}  // namespace tandem::step
