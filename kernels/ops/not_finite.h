// kNotFinite: what Sample writes for a row of which a logit is NaN or +inf, or every one is -inf.
#ifndef TANDEM_KERNELS_OPS_NOT_FINITE_H_
#define TANDEM_KERNELS_OPS_NOT_FINITE_H_

#include <cstdint>

namespace tandem::kernels {

inline constexpr int32_t kNotFinite = -1;

}  // namespace tandem::kernels

#endif  // TANDEM_KERNELS_OPS_NOT_FINITE_H_
