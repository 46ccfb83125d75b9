#include "tests/kernels/checking/compare.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/tensor/blocks_of_32.h"
#include "common/tensor/f16.h"

namespace tandem::kernels::checking {
namespace {

template <typename T>
T Read(const std::vector<std::byte>& bytes, size_t index) {
  T value;
  std::memcpy(&value, &bytes[sizeof(T) * index], sizeof(T));
  return value;
}

tensor::BlockQ8_0 BlockOf(const std::vector<std::byte>& bytes, size_t index) {
  return Read<tensor::BlockQ8_0>(bytes, index / tensor::BlockQ8_0::kValues);
}

double ValueAt(Element element, const std::vector<std::byte>& bytes, size_t index) {
  switch (element) {
    case Element::kF32:
      return Read<float>(bytes, index);
    case Element::kF64:
      return Read<double>(bytes, index);
    case Element::kF16:
      return tensor::HalfToFloat(Read<uint16_t>(bytes, index));
    case Element::kBF16:
      return tensor::Bf16ToFloat(Read<uint16_t>(bytes, index));
    case Element::kQ8_0: {
      const tensor::BlockQ8_0 block = BlockOf(bytes, index);
      return double{tensor::HalfToFloat(block.d)} * block.qs[index % tensor::BlockQ8_0::kValues];
    }
    case Element::kI32:
      break;
  }
  return Read<int32_t>(bytes, index);
}

// How far two values may lie apart that rounding took to neighbours.
double StepAt(Element element, const std::vector<std::byte>& bytes, size_t index) {
  const double magnitude = std::abs(ValueAt(element, bytes, index));
  switch (element) {
    case Element::kF16:
      return std::max(magnitude * 0x1p-10, 0x1p-24);
    case Element::kBF16:
      return magnitude * 0x1p-7;
    case Element::kQ8_0:
      // 127 times a step of the scale, a half, are a sixteenth.
      return double{tensor::HalfToFloat(BlockOf(bytes, index).d)} * 17 / 16;
    default:
      return 0;
  }
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
  const double everywhere = output.tolerance * std::max(RootMeanSquare(output, judge), 1e-6);
  for (size_t row = 0; row < output.rows; ++row) {
    for (size_t col = 0; col < output.cols; ++col) {
      const size_t index = row * output.stride + col;
      const double is = ValueAt(output.element, subject, index),
                   should = ValueAt(output.element, judge, index);
      const double step = output.tolerance == 0 ? 0 : StepAt(output.element, judge, index);
      const double allowed = everywhere + step;
      if (Agree(is, should, allowed)) continue;
      return absl::InternalError(absl::StrCat("row ", row, " column ", col, " is ", is,
                                              ", should be ", should, " within ", allowed));
    }
  }
  return absl::OkStatus();
}

}  // namespace tandem::kernels::checking
