// Compares what two backends wrote to the same array.
#ifndef TANDEM_KERNELS_CHECKING_COMPARE_H_
#define TANDEM_KERNELS_CHECKING_COMPARE_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"

namespace tandem::kernels::checking {

enum class Element { kF32, kF16, kI32 };

// An array that an op writes: `rows` rows of `cols` values, `stride` values apart, in the subject's
// memory.
struct Output {
  const void* data;
  Element element;
  size_t rows;
  size_t cols;
  size_t stride;
  float tolerance;  // of the root mean square; 0: the same bits

  size_t bytes() const {
    const size_t values = rows == 0 || cols == 0 ? 0 : (rows - 1) * stride + cols;
    return values * (element == Element::kF16 ? 2 : 4);
  }
};

// INTERNAL with the place and both values where `subject` and `judge`, bytes() each, differ by more
// than the tolerance.
absl::Status Compare(const Output& output, const std::vector<std::byte>& subject,
                     const std::vector<std::byte>& judge);

}  // namespace tandem::kernels::checking

#endif  // TANDEM_KERNELS_CHECKING_COMPARE_H_
