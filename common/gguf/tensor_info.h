// One row of a GGUF file's tensor directory.
#ifndef TANDEM_COMMON_GGUF_TENSOR_INFO_H_
#define TANDEM_COMMON_GGUF_TENSOR_INFO_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/tensor/type.h"

namespace tandem::gguf {

// Checked by the reader: dims are positive, dims[0] is a multiple of the type's block, the data is
// inside the file.
struct TensorInfo {
  std::string_view name;
  tensor::Type type{};
  uint32_t num_dims = 0;                     // 1 to 4
  std::array<uint64_t, 4> dims{1, 1, 1, 1};  // dims[0] varies fastest: the columns of a matrix
  uint64_t offset = 0;                       // from the start of the data section
  uint64_t values = 0;                       // product of dims
  uint64_t bytes = 0;
  const std::byte* data = nullptr;  // in the mapped file

  // "[4096, 128]", the order of shapes in files: columns first.
  std::string ShapeText() const;
};

}  // namespace tandem::gguf

#endif  // TANDEM_COMMON_GGUF_TENSOR_INFO_H_
