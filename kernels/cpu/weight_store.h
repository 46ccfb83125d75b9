// The cpu backend's copies of weights, in panels (kernels/host/panels.h): memory of large pages
// that is never freed one by one.
#ifndef TANDEM_KERNELS_CPU_WEIGHT_STORE_H_
#define TANDEM_KERNELS_CPU_WEIGHT_STORE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "kernels/host/op_list.h"

namespace tandem::kernels::cpu {

// Not thread-safe.
class WeightStore {
 public:
  // Runs a list on the backend's threads and waits for it.
  using RunList = std::function<absl::Status(const host::OpList&)>;
  using Copied = std::function<void(std::span<const std::byte> part)>;

  // In bytes.
  struct Sizes {
    size_t task = size_t{256} << 10;   // copied by one task
    size_t run = size_t{32} << 20;     // copied, or read if that is more, between calls of `copied`
    size_t region = size_t{64} << 20;  // of memory for several weights; large pages
  };

  // `panel_rows`: lanes of the kernels that will read the weights.
  WeightStore(uint32_t panel_rows, uint32_t threads) : WeightStore(panel_rows, threads, Sizes()) {}
  WeightStore(uint32_t panel_rows, uint32_t threads, const Sizes& sizes)
      : sizes_(sizes), panel_rows_(panel_rows), list_(threads) {}

  // Copies a weight: to panels, or to rows if it is for heads. Calls `copied`, if any, with each
  // part of the source that is no longer needed. RESOURCE_EXHAUSTED with the size when there is no
  // memory.
  absl::StatusOr<Weight> Place(const Weight& host, const RunList& run, const Copied& copied);

 private:
  // Zeroed memory, 64-byte aligned.
  absl::StatusOr<std::byte*> Take(size_t bytes);

  const Sizes sizes_;
  const uint32_t panel_rows_;
  host::OpList list_;
  std::vector<Buffer> regions_;
  size_t used_ = 0;  // of the last region
};

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_WEIGHT_STORE_H_
