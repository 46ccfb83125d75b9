// Compares what two backends wrote to the same array.
#ifndef TANDEM_TESTS_KERNELS_CHECKING_COMPARE_H_
#define TANDEM_TESTS_KERNELS_CHECKING_COMPARE_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"

namespace tandem::kernels::checking {

enum class Element { kF32, kF64, kF16, kBF16, kQ8_0, kI32 };

// An array that an op writes: `rows` rows of `cols` values, `stride` values apart, in the subject's
// memory. Rows of Q8_0 are whole blocks, and so is the stride.
struct Output {
  const void* data;
  Element element;
  size_t rows;
  size_t cols;
  size_t stride;
  float tolerance;  // of the root mean square; 0: the same values

  size_t bytes() const {
    const size_t values = rows == 0 || cols == 0 ? 0 : (rows - 1) * stride + cols;
    switch (element) {
      case Element::kF64:
        return values * 8;
      case Element::kF16:
      case Element::kBF16:
        return values * 2;
      case Element::kQ8_0:
        return values / 32 * 34;
      default:
        return values * 4;
    }
  }
};

// INTERNAL with the place and both values where `subject` and `judge`, bytes() each, differ by more
// than the tolerance; where there is one, rounded elements may differ by one step of their type
// besides.
absl::Status Compare(const Output& output, const std::vector<std::byte>& subject,
                     const std::vector<std::byte>& judge);

}  // namespace tandem::kernels::checking

#endif  // TANDEM_TESTS_KERNELS_CHECKING_COMPARE_H_
