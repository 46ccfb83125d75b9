#include "kernels/checking/compare.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/tensor/f16.h"

namespace tandem::kernels::checking {
namespace {

double ValueAt(Element element, const std::vector<std::byte>& bytes, size_t index) {
  switch (element) {
    case Element::kF32: {
      float value;
      std::memcpy(&value, &bytes[4 * index], 4);
      return value;
    }
    case Element::kF16: {
      uint16_t value;
      std::memcpy(&value, &bytes[2 * index], 2);
      return tensor::HalfToFloat(value);
    }
    case Element::kI32:
      break;
  }
  int32_t value;
  std::memcpy(&value, &bytes[4 * index], 4);
  return value;
}

// Over the finite values of the array.
double RootMeanSquare(const Output& output, const std::vector<std::byte>& bytes) {
  double sum = 0;
  size_t count = 0;
  for (size_t row = 0; row < output.rows; ++row) {
    for (size_t col = 0; col < output.cols; ++col) {
      const double value = ValueAt(output.element, bytes, row * output.stride + col);
      if (!std::isfinite(value)) continue;
      sum += value * value;
      ++count;
    }
  }
  return count == 0 ? 0 : std::sqrt(sum / static_cast<double>(count));
}

// Equal, both NaN, or close enough.
bool Agree(double subject, double judge, double allowed) {
  return subject == judge || (std::isnan(subject) && std::isnan(judge)) ||
         std::abs(subject - judge) <= allowed;
}

}  // namespace

absl::Status Compare(const Output& output, const std::vector<std::byte>& subject,
                     const std::vector<std::byte>& judge) {
  const double allowed = output.tolerance * std::max(RootMeanSquare(output, judge), 1e-6);
  for (size_t row = 0; row < output.rows; ++row) {
    for (size_t col = 0; col < output.cols; ++col) {
      const size_t index = row * output.stride + col;
      const double is = ValueAt(output.element, subject, index),
                   should = ValueAt(output.element, judge, index);
      if (Agree(is, should, allowed)) continue;
      return absl::InternalError(absl::StrCat("row ", row, " column ", col, " is ", is,
                                              ", should be ", should, " within ", allowed));
    }
  }
  return absl::OkStatus();
}

}  // namespace tandem::kernels::checking
