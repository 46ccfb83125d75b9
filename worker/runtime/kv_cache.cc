#include "worker/runtime/kv_cache.h"

#include "absl/strings/str_cat.h"
#include "common/base/checked_size.h"
#include "common/base/status.h"

namespace tandem::worker {
namespace {

uint64_t KBlockBytes(const kernels::KvPages& pages) {
  return tensor::RowBytes(pages.type, pages.head_dim) * pages.kv_heads * pages.block_size;
}

uint64_t VBlockBytes(const kernels::KvPages& pages) {
  if (pages.latent) return 0;  // V is the first part of K's row
  return tensor::RowBytes(pages.type, pages.value_dim) * pages.kv_heads * pages.block_size;
}

}  // namespace

std::vector<kernels::KvPages> ShapeOnlyPages(const model::ModelSpec& spec,
                                             const model::ShardPlan& plan,
                                             const RunnerOptions& options) {
  std::vector<kernels::KvPages> pages(spec.NumLoadedLayers());
  for (const model::KvGroupSpec& group : spec.kv_groups) {
    const model::HeadSizes heads = spec.HeadsOf(group);
    const kernels::KvPages shape{.type = options.config.cache.kv_cache_type,
                                 .block_size = options.config.cache.block_size,
                                 .kv_heads = KvHeadRange(spec, plan, heads).size(),
                                 .head_dim = heads.head_dim,
                                 .value_dim = heads.value_dim,
                                 .latent = spec.mla.has_value()};
    for (const uint32_t layer : group.layers) pages[layer] = shape;
    for (const model::CacheReader& reader : group.readers) pages[reader.layer] = shape;
  }
  return pages;
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
  CheckedSize total = 0;
  for (const kernels::KvPages& pages : cache.pages_) {
    total += CheckedSize(pages.num_blocks) * (KBlockBytes(pages) + VBlockBytes(pages));
  }
  if (!total.FitsIn(uint64_t{1} << 62)) {
    return absl::ResourceExhaustedError("KV cache larger than any memory");
  }
  TANDEM_ASSIGN_OR_RETURN(cache.buffer_, backend.Allocate(*total.value()));
  std::byte* at = cache.buffer_.data();
  for (kernels::KvPages& pages : cache.pages_) {
    pages.k_columns = backend.WantsKeyColumns(pages);
    pages.k = at;
    at += pages.num_blocks * KBlockBytes(pages);
    pages.v = pages.latent ? nullptr : at;
    at += pages.num_blocks * VBlockBytes(pages);
  }
  for (const model::KvGroupSpec& group : spec.kv_groups) {
    for (const model::CacheReader& reader : group.readers) {
      cache.pages_[reader.layer] = cache.pages_[reader.source];
    }
  }
  return cache;
}

}  // namespace tandem::worker
