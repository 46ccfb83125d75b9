// CacheConfig: the KV cache.
#ifndef TANDEM_COMMON_CONFIG_CACHE_CONFIG_H_
#define TANDEM_COMMON_CONFIG_CACHE_CONFIG_H_

#include <cstdint>
#include <utility>

#include "common/config/field.h"
#include "common/tensor/type.h"

namespace tandem::config {

// Element types of the KV cache.
template <>
struct EnumNames<tensor::Type> {
  static constexpr std::pair<tensor::Type, const char*> kNames[] = {{tensor::Type::kF32, "f32"},
                                                                    {tensor::Type::kF16, "f16"},
                                                                    {tensor::Type::kBF16, "bf16"},
                                                                    {tensor::Type::kQ8_0, "q8_0"}};
};

struct CacheConfig {
  uint32_t block_size = 16;
  uint32_t num_kv_blocks = 0;
  ByteSize kv_cache_memory{};
  tensor::Type kv_cache_type = tensor::Type::kF16;
  // 0: chosen by the coordinator, which then tells its workers a number; to a worker it means that
  // there are no snapshots (kv::SnapshotInterval).
  uint32_t state_snapshot_interval = 0;

  void ForEach(FieldList& visit) {
    visit.BeginSection("KV cache");
    visit(block_size,
          {.flag = "--block-size", .help = "tokens of a KV block", .least = 1, .most = 4096});
    visit(num_kv_blocks, {.flag = "--num-kv-blocks",
                          .help = "KV blocks (0: by --kv-cache-memory)",
                          .least = 0,
                          .most = 2147483647});
    visit(kv_cache_memory,
          {.flag = "--kv-cache-memory",
           .help = "KV memory of all ranks together, such as 512MiB or 2GiB (auto, cpu: what "
                   "--max-num-seqs x --max-model-len needs, at most 4GiB and what is free; auto, "
                   "cuda: by --gpu-memory-utilization)"});
    visit(kv_cache_type, {.flag = "--kv-cache-type", .help = "element type of K and V"});
    visit(state_snapshot_interval,
          {.flag = "--state-snapshot-interval",
           .help = "tokens between two snapshots of a recurrent state, which prefix hits need: the "
                   "cache has room for one per interval of its KV blocks, and a step prefills at "
                   "most two intervals of a sequence (0: as many tokens as take the memory of "
                   "one)",
           .least = 0,
           .most = 2147483647});
  }
};

}  // namespace tandem::config

#endif  // TANDEM_COMMON_CONFIG_CACHE_CONFIG_H_
