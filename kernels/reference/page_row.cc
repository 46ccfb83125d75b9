#include "kernels/reference/page_row.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "common/base/check.h"
#include "common/tensor/blocks_of_32.h"
#include "common/tensor/f16.h"

namespace tandem::kernels::reference {
namespace {

void StoreBlock(const float* values, tensor::BlockQ8_0* block) {
  float largest = 0;
  bool finite = true;
  for (int i = 0; i < tensor::BlockQ8_0::kValues; ++i) {
    largest = std::max(largest, std::abs(values[i]));
    finite &= std::isfinite(values[i]);
  }
  block->d = tensor::FloatToHalf(finite ? largest / 127.0f : std::nanf(""));
  const float scale = tensor::HalfToFloat(block->d);
  for (int i = 0; i < tensor::BlockQ8_0::kValues; ++i) {
    const bool has_value = scale > 0 && std::isfinite(scale);
    const float steps = has_value ? std::nearbyint(values[i] / scale) : 0.0f;
    block->qs[i] = static_cast<int8_t>(std::clamp(steps, -127.0f, 127.0f));
  }
}

template <uint16_t (*kConvert)(float)>
void StoreHalves(const float* values, uint32_t dim, std::byte* row) {
  auto* const out = reinterpret_cast<uint16_t*>(row);
  for (uint32_t i = 0; i < dim; ++i) out[i] = kConvert(values[i]);
}

}  // namespace

void StorePageRow(tensor::Type type, const float* values, uint32_t dim, std::byte* row) {
  switch (type) {
    case tensor::Type::kF32:
      std::memcpy(row, values, dim * sizeof(float));
      return;
    case tensor::Type::kF16:
      return StoreHalves<tensor::FloatToHalf>(values, dim, row);
    case tensor::Type::kBF16:
      return StoreHalves<tensor::FloatToBf16>(values, dim, row);
    case tensor::Type::kQ8_0: {
      constexpr uint32_t kValues = tensor::BlockQ8_0::kValues;
      TANDEM_CHECK(dim % kValues == 0) << "Q8_0 page rows of " << dim << " values";
      auto* const blocks = reinterpret_cast<tensor::BlockQ8_0*>(row);
      for (uint32_t b = 0; b < dim / kValues; ++b) StoreBlock(values + b * kValues, &blocks[b]);
      return;
    }
    default:
      TANDEM_CHECK(false) << "KV pages of type " << tensor::Name(type);
  }
}

}  // namespace tandem::kernels::reference
