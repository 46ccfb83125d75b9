#include "worker/runtime/kv_cache.h"

#include "absl/strings/str_cat.h"
#include "common/base/checked_size.h"
#include "common/base/status.h"

namespace tandem::worker {
namespace {

uint64_t KBlockBytes(const model::ModelSpec& spec, const model::ShardPlan& plan,
                     const RunnerOptions& options) {
  return tensor::RowBytes(options.config.cache.kv_cache_type, spec.head_dim) *
         plan.kv_heads.size() * options.config.cache.block_size;
}

uint64_t VBlockBytes(const model::ModelSpec& spec, const model::ShardPlan& plan,
                     const RunnerOptions& options) {
  if (spec.mla.has_value()) return 0;  // V is the first part of K's row
  return tensor::RowBytes(options.config.cache.kv_cache_type, spec.value_dim) *
         plan.kv_heads.size() * options.config.cache.block_size;
}

}  // namespace

std::vector<kernels::KvPages> ShapeOnlyPages(const model::ModelSpec& spec,
                                             const model::ShardPlan& plan,
                                             const RunnerOptions& options) {
  return std::vector<kernels::KvPages>(spec.num_layers,
                                       {.type = options.config.cache.kv_cache_type,
                                        .block_size = options.config.cache.block_size,
                                        .kv_heads = plan.kv_heads.size(),
                                        .head_dim = spec.head_dim,
                                        .value_dim = spec.value_dim,
                                        .latent = spec.mla.has_value()});
}

absl::StatusOr<KvCache> KvCache::Create(const model::ModelSpec& spec, const model::ShardPlan& plan,
                                        const RunnerOptions& options,
                                        const std::vector<uint32_t>& num_blocks,
                                        kernels::Backend& backend) {
  KvCache cache;
  cache.pages_ = ShapeOnlyPages(spec, plan, options);
  for (size_t group = 0; group < spec.kv_groups.size(); ++group) {
    for (uint32_t layer : spec.kv_groups[group].layers) {
      cache.pages_[layer].num_blocks = num_blocks[group];
    }
  }
  const uint64_t k_block = KBlockBytes(spec, plan, options);
  const uint64_t v_block = VBlockBytes(spec, plan, options);
  CheckedSize total = 0;
  for (const auto& page : cache.pages_) total += CheckedSize(page.num_blocks) * (k_block + v_block);
  if (!total.FitsIn(uint64_t{1} << 62)) {
    return absl::ResourceExhaustedError("KV cache larger than any memory");
  }
  TANDEM_ASSIGN_OR_RETURN(cache.buffer_, backend.Allocate(*total.value()));
  std::byte* at = cache.buffer_.data();
  for (auto& page : cache.pages_) {
    page.k = at;
    at += page.num_blocks * k_block;
    page.v = page.latent ? nullptr : at;
    at += page.num_blocks * v_block;
  }
  return cache;
}

}  // namespace tandem::worker
