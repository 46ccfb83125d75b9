// Validation of a weight, shared by all backends, before placing it.
#ifndef TANDEM_KERNELS_CHECK_WEIGHT_H_
#define TANDEM_KERNELS_CHECK_WEIGHT_H_

#include "absl/status/status.h"
#include "kernels/ops.h"

namespace tandem::kernels {

// INVALID_ARGUMENT, with the numbers, for an invalid shape: columns that are not whole blocks, a
// part outside the matrix, or overlapping rows.
absl::Status CheckWeightShape(const Weight& weight);

// UNIMPLEMENTED for scales of a weight whose ops would ignore them: all but MatMul and
// ExpertMatMul.
absl::Status CheckWeightScales(const Weight& weight);

}  // namespace tandem::kernels

#endif  // TANDEM_KERNELS_CHECK_WEIGHT_H_
