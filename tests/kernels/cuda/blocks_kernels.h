// Runs the functions of kernels/cuda/device/blocks.h on one row, so that a test can look at what
// they give.
#ifndef TANDEM_TESTS_KERNELS_CUDA_BLOCKS_KERNELS_H_
#define TANDEM_TESTS_KERNELS_CUDA_BLOCKS_KERNELS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/tensor/type.h"

namespace tandem::kernels::cuda {

// 32 activations as bytes, with their scale.
struct ByteGroup {
  int8_t bytes[32];
  float scale;
};

struct BlockResults {
  std::string error;          // empty: it ran
  std::vector<float> single;  // ValueAt of every column
  std::vector<float> eights;  // Dequantize8
  std::vector<float> dots;    // Dot32 per 32 columns; empty for plain types
};

// `file_row` has x.size() * 32 values, as in a file.
BlockResults RunOnRow(tensor::Type type, const std::vector<std::byte>& file_row,
                      const std::vector<ByteGroup>& x);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_TESTS_KERNELS_CUDA_BLOCKS_KERNELS_H_
