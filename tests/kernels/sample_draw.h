// Runs Sample on a backend.
#ifndef TANDEM_TESTS_KERNELS_SAMPLE_DRAW_H_
#define TANDEM_TESTS_KERNELS_SAMPLE_DRAW_H_

#include <cstdint>
#include <vector>

#include "kernels/ops/sample.h"
#include "tests/kernels/backends.h"

namespace tandem::kernels {

// The ids drawn for `rows` of logits, (any, vocab).
inline std::vector<int32_t> Draw(Rig& rig, const std::vector<float>& logits, uint32_t vocab,
                                 const std::vector<SamplingRow>& rows,
                                 const std::vector<LogitAdjustment>& adjustments = {},
                                 const std::vector<uint32_t>& masks = {}) {
  const float* const device = rig.Put(logits, 1);
  const SamplingRow* const device_rows = rig.Put(rows);
  const LogitAdjustment* const device_adjustments =
      adjustments.empty() ? nullptr : rig.Put(adjustments);
  int32_t* const out = rig.Put(std::vector<int32_t>(rows.size(), -7));
  const SampleParams params{.logits = device,
                            .vocab = vocab,
                            .rows = device_rows,
                            .count = static_cast<uint32_t>(rows.size()),
                            .adjustments = device_adjustments,
                            .masks = masks.empty() ? nullptr : rig.Put(masks),
                            .out = out};
  rig.Run([&](Backend& b) { b.Encode(params); });
  return rig.Get(out, rows.size());
}

}  // namespace tandem::kernels

#endif  // TANDEM_TESTS_KERNELS_SAMPLE_DRAW_H_
