// The parts of RopeWriteKv that must be identical in all host backends: angles and temperatures.
#ifndef TANDEM_KERNELS_HOST_ROPE_H_
#define TANDEM_KERNELS_HOST_ROPE_H_

#include <cstdint>

#include "kernels/ops.h"

namespace tandem::kernels::host {

// cos[i], sin[i] of position * inv_freq[i], times magnitude, for i < rotary_dims / 2. The angle is
// a float product, as the models' own training code computes it.
void RopeAngles(const RopeWriteKvParams& params, int32_t position, float* cos, float* sin);

// What the queries of a position are multiplied by; 1 if they have no temperature.
float QueryTemperature(const RopeWriteKvParams& params, int32_t position);

}  // namespace tandem::kernels::host

#endif  // TANDEM_KERNELS_HOST_ROPE_H_
