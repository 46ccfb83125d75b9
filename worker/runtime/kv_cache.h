// KvCache: the pages of all layers in one allocation. Blocks are stored here and assigned by the
// coordinator.
//
// A layer that reads another's cache has its pages. Layout: layer after layer; of a layer first all
// K blocks, then all V blocks (kernels::KvPages). One thread.
#ifndef TANDEM_WORKER_RUNTIME_KV_CACHE_H_
#define TANDEM_WORKER_RUNTIME_KV_CACHE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/kv/kv_shape.h"
#include "common/model/shard.h"
#include "common/model/spec.h"
#include "kernels/backend.h"
#include "worker/runtime/runner_options.h"

namespace tandem::worker {

class KvCache {
 public:
  // `num_blocks` per KV group.
  static absl::StatusOr<KvCache> Create(const model::ModelSpec& spec, const model::ShardPlan& plan,
                                        const RunnerOptions& options,
                                        const std::vector<uint32_t>& num_blocks,
                                        kernels::Backend& backend);

  // One entry per layer, the draft head's last.
  const std::vector<kernels::KvPages>& pages() const { return pages_; }
  uint64_t bytes() const { return buffer_.bytes(); }

 private:
  kernels::Buffer buffer_;
  std::vector<kernels::KvPages> pages_;
};

// Pages with shapes but no memory, for the plan pass.
std::vector<kernels::KvPages> ShapeOnlyPages(const model::ModelSpec& spec,
                                             const model::ShardPlan& plan,
                                             const RunnerOptions& options);

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_RUNTIME_KV_CACHE_H_
