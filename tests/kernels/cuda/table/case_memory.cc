#include "tests/kernels/cuda/table/case_memory.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "tests/kernels/cuda/table/random_rows.h"

namespace tandem::kernels {
namespace {

using tensor::Type;

constexpr size_t kDifferentFloats = 1 << 20;

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
  std::vector<std::byte> bytes(rows * tensor::RowBytes(type, cols));
  FillRandomRows(random_, type, cols, bytes);
  return bytes;
}

void* CaseMemory::Upload(const void* data, size_t bytes) {
  void* const device = Room(bytes);
  backend_.BeginEncode(EncodeMode::kRun);
  backend_.Upload(device, data, bytes);
  const absl::Status status = backend_.SubmitAndWait(Deadline::After(std::chrono::minutes(1)));
  TANDEM_CHECK(status.ok()) << status;
  return device;
}

}  // namespace tandem::kernels
