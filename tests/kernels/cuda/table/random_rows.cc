#include "tests/kernels/cuda/table/random_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "common/base/check.h"
#include "common/tensor/blocks_of_256.h"
#include "common/tensor/blocks_of_32.h"
#include "common/tensor/f16.h"

namespace tandem::kernels {
namespace {

using tensor::Type;

void PutHalf(std::byte* at, float value) {
  const uint16_t half = tensor::FloatToHalf(value);
  std::memcpy(at, &half, sizeof(half));
}

// The scales of a block of random bits, so that the values it stands for have `deviation`.
void PutScales(Type type, std::byte* block, float deviation) {
  constexpr float kOfBytes = 73.9f;           // of uniform signed bytes
  constexpr float kOfQ6K = kOfBytes * 18.5f;  // such a scale times -32..31
  constexpr float kOfQ4K = 256.0f;            // scale * q - 7.5 * minimum: 6 bits, 4 bits, 6 bits
  if (type == Type::kQ6_K) {
    PutHalf(block + offsetof(tensor::BlockQ6_K, d), deviation / kOfQ6K);
  } else if (type == Type::kQ4_K) {
    PutHalf(block + offsetof(tensor::BlockQ4_K, d), deviation / kOfQ4K);
    PutHalf(block + offsetof(tensor::BlockQ4_K, dmin), 7.5f * deviation / kOfQ4K);
  } else {
    TANDEM_CHECK(type == Type::kQ8_0) << "no random " << tensor::Name(type);
    PutHalf(block + offsetof(tensor::BlockQ8_0, d), deviation / kOfBytes);
  }
}

void FillBlock(std::minstd_rand& random, Type type, std::byte* block, uint32_t bytes,
               float deviation) {
  const float uniform = static_cast<float>(random() % 2001) / 1000.0f - 1;
  const float value = std::sqrt(3.0f) * deviation * uniform;
  if (type == Type::kF32) {
    std::memcpy(block, &value, sizeof(value));
  } else if (type == Type::kF16) {
    PutHalf(block, value);
  } else if (type == Type::kBF16) {
    const uint16_t half = tensor::FloatToBf16(value);
    std::memcpy(block, &half, sizeof(half));
  } else {
    for (uint32_t i = 0; i < bytes; ++i) block[i] = static_cast<std::byte>(random() >> 8);
    const float sign = (random() & 0x100) != 0 ? 1.0f : -1.0f;
    PutScales(type, block, sign * deviation * (1 + 0.4f * uniform));
  }
}

}  // namespace

void FillRandomRows(std::minstd_rand& random, Type type, uint32_t cols, std::span<std::byte> rows) {
  const tensor::TypeTraits& traits = tensor::Traits(type);
  const auto deviation = 1 / std::sqrt(static_cast<float>(cols));
  size_t filled = std::min<size_t>(kDifferentRows * tensor::RowBytes(type, cols), rows.size());
  for (size_t at = 0; at < filled; at += traits.block_bytes) {
    FillBlock(random, type, &rows[at], traits.block_bytes, deviation);
  }
  for (size_t part; filled < rows.size(); filled += part) {
    part = std::min(filled, rows.size() - filled);
    std::memcpy(&rows[filled], rows.data(), part);
  }
}

}  // namespace tandem::kernels
