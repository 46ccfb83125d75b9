#include "kernels/host/rope.h"

#include <cmath>

namespace tandem::kernels::host {

void RopeAngles(const RopeWriteKvParams& params, int32_t position, float* cos, float* sin) {
  for (uint32_t i = 0; i < params.rotary_dims / 2; ++i) {
    const float angle = static_cast<float>(position) * params.inv_freq[i];
    cos[i] = std::cos(angle) * params.magnitude;
    sin[i] = std::sin(angle) * params.magnitude;
  }
}

float QueryTemperature(const RopeWriteKvParams& params, int32_t position) {
  if (params.temperature_scale == 0.0f) return 1.0f;
  const int64_t step =
      (int64_t{position} + params.temperature_offset) / int64_t{params.temperature_length};
  return static_cast<float>(1.0 + params.temperature_scale * std::log1p(static_cast<double>(step)));
}

}  // namespace tandem::kernels::host
