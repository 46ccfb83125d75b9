// What any backend refuses of a weight before it places it.
#ifndef TANDEM_KERNELS_CHECK_WEIGHT_H_
#define TANDEM_KERNELS_CHECK_WEIGHT_H_

#include "absl/status/status.h"
#include "kernels/ops.h"

namespace tandem::kernels {

// INVALID_ARGUMENT, with the numbers, for a shape that can't be: columns that are no whole blocks,
// a part outside the matrix, rows that overlap.
absl::Status CheckWeightShape(const Weight& weight);

}  // namespace tandem::kernels

#endif  // TANDEM_KERNELS_CHECK_WEIGHT_H_
