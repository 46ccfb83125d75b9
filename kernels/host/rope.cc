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

}  // namespace tandem::kernels::host
