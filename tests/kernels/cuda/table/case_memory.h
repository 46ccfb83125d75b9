// CaseMemory: device memory of one case of the table, filled with random values: a backend computes
// with zeros at another speed, and with NaNs at a third.
//
// Memory lasts as long as the object. Errors of the backend end the program: it is a benchmark.
#ifndef TANDEM_TESTS_KERNELS_CUDA_TABLE_CASE_MEMORY_H_
#define TANDEM_TESTS_KERNELS_CUDA_TABLE_CASE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "kernels/backend.h"

namespace tandem::kernels {

class CaseMemory {
 public:
  explicit CaseMemory(Backend& backend) : backend_(backend) {}

  // Values in [-1, 1).
  float* Floats(size_t count);
  template <typename T>
  T* Put(const std::vector<T>& values) {
    return static_cast<T*>(Upload(values.data(), values.size() * sizeof(T)));
  }
  // Not written.
  void* Room(size_t bytes);
  // Rows of a page type.
  void* Pages(tensor::Type type, size_t rows, uint32_t dim);
  // `count` contiguous matrices of one shape.
  Weight Matrices(tensor::Type type, uint32_t rows, uint32_t cols, uint32_t count);

 private:
  std::vector<std::byte> RandomRows(tensor::Type type, size_t rows, uint32_t cols);
  void* Upload(const void* data, size_t bytes);

  Backend& backend_;
  std::minstd_rand random_{7};
  std::vector<Buffer> buffers_;
};

// One of Matrices.
inline const void* MatrixOf(const Weight& matrices, size_t index) {
  return static_cast<const std::byte*>(matrices.data) + index * matrices.matrix_stride_bytes;
}

}  // namespace tandem::kernels

#endif  // TANDEM_TESTS_KERNELS_CUDA_TABLE_CASE_MEMORY_H_
