#include "tests/kernels/cuda/table/case_memory.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/tensor/blocks_of_256.h"
#include "common/tensor/blocks_of_32.h"
#include "common/tensor/f16.h"

namespace tandem::kernels {
namespace {

using tensor::Type;

constexpr size_t kDifferentRows = 61;
constexpr size_t kDifferentFloats = 1 << 20;

// Where a block has halves: its scales.
std::vector<size_t> HalvesOf(Type type) {
  if (type == Type::kQ6_K) return {offsetof(tensor::BlockQ6_K, d)};
  if (type == Type::kQ4_K)
    return {offsetof(tensor::BlockQ4_K, d), offsetof(tensor::BlockQ4_K, dmin)};
  TANDEM_CHECK(type == Type::kQ8_0) << "no table of " << tensor::Name(type);
  return {offsetof(tensor::BlockQ8_0, d)};
}

void FillBlock(std::minstd_rand& random, Type type, std::byte* block, uint32_t bytes) {
  const float value = static_cast<float>(random() % 2001) / 1000.0f - 1;
  if (type == Type::kF32) {
    std::memcpy(block, &value, sizeof(value));
  } else if (type == Type::kF16 || type == Type::kBF16) {
    const uint16_t half =
        type == Type::kF16 ? tensor::FloatToHalf(value) : tensor::FloatToBf16(value);
    std::memcpy(block, &half, sizeof(half));
  } else {
    for (uint32_t i = 0; i < bytes; ++i) block[i] = static_cast<std::byte>(random() >> 8);
    const uint16_t scale = tensor::FloatToHalf(0.001f * (1.5f + value));
    for (const size_t at : HalvesOf(type)) std::memcpy(block + at, &scale, sizeof(scale));
  }
}

}  // namespace

float* CaseMemory::Floats(size_t count) {
  std::vector<float> values(count);
  const size_t different = std::min(count, kDifferentFloats);
  for (size_t i = 0; i < different; ++i) {
    values[i] = static_cast<float>(random_() % 2000) / 1000.0f - 1;
  }
  for (size_t i = different; i < count; ++i) values[i] = values[i - different];
  return Put(values);
}

void* CaseMemory::Room(size_t bytes) {
  auto buffer = backend_.Allocate(bytes);
  TANDEM_CHECK(buffer.ok()) << buffer.status();
  buffers_.push_back(std::move(buffer).value());
  return buffers_.back().data();
}

void* CaseMemory::Pages(Type type, size_t rows, uint32_t dim) {
  const std::vector<std::byte> bytes = RandomRows(type, rows, dim);
  return Upload(bytes.data(), bytes.size());
}

Weight CaseMemory::Matrices(Type type, uint32_t rows, uint32_t cols, uint32_t count) {
  const std::vector<std::byte> bytes = RandomRows(type, size_t{rows} * count, cols);
  const uint64_t row_bytes = tensor::RowBytes(type, cols);
  const auto placed = backend_.PlaceWeight({.type = type,
                                            .data = bytes.data(),
                                            .rows = rows,
                                            .cols = cols,
                                            .row_stride_bytes = row_bytes,
                                            .col_begin = 0,
                                            .col_count = cols,
                                            .count = count,
                                            .matrix_stride_bytes = rows * row_bytes});
  TANDEM_CHECK(placed.ok()) << placed.status();
  return *placed;
}

std::vector<std::byte> CaseMemory::RandomRows(Type type, size_t rows, uint32_t cols) {
  const tensor::TypeTraits& traits = tensor::Traits(type);
  const uint64_t row_bytes = tensor::RowBytes(type, cols);
  std::vector<std::byte> bytes(rows * row_bytes);
  const size_t different = std::min(rows, kDifferentRows) * row_bytes;
  for (size_t at = 0; at < different; at += traits.block_bytes) {
    FillBlock(random_, type, &bytes[at], traits.block_bytes);
  }
  for (size_t at = different; at < bytes.size(); at += different) {
    std::copy_n(bytes.begin(), std::min(different, bytes.size() - at),
                bytes.begin() + static_cast<ptrdiff_t>(at));
  }
  return bytes;
}

void* CaseMemory::Upload(const void* data, size_t bytes) {
  void* const device = Room(bytes);
  backend_.BeginEncode(EncodeMode::kRun);
  backend_.Upload(device, data, bytes);
  absl::Status status = backend_.Submit(Deadline::After(std::chrono::minutes(1)));
  if (status.ok()) status = backend_.Wait();
  TANDEM_CHECK(status.ok()) << status;
  return device;
}

}  // namespace tandem::kernels
