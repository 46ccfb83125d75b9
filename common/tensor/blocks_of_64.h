// Weight formats in blocks of 64 values. Layouts: https://github.com/ggml-org/ggml (block_nvfp4).
#ifndef TANDEM_COMMON_TENSOR_BLOCKS_OF_64_H_
#define TANDEM_COMMON_TENSOR_BLOCKS_OF_64_H_

#include <cstdint>

#include "common/tensor/codebook.h"

namespace tandem::tensor {

// NVFP4: 64 values of FP4 (E2M1) in 4 groups of 16, each with an FP8 scale (E4M3).
//
// value = Scale(g) * codebook[q], kMxfp4Codebook, for value i of group g = i / 16. Bytes qs[8 g ..
// 8 g + 7] are group g: byte j holds its value j in the low half and its value j + 8 in the high
// half. What a file gives for a whole matrix (X.scale beside X.weight) is no part of the format.
// Source: NVIDIA, "Introducing NVFP4 for Efficient and Accurate Low-Precision Inference".
struct BlockNVFP4 {
  static constexpr int kValues = 64;
  static constexpr int kGroupValues = 16;
  static constexpr int kGroups = 4;
  uint8_t d[4];    // one scale per group
  uint8_t qs[32];  // two values per byte

  // In [0, 16).
  int Index(int i) const { return (qs[i / 16 * 8 + i % 8] >> (i % 16 < 8 ? 0 : 4)) & 15; }
  // Half of the scale, as the codebook's values are doubled: four bits of exponent with a bias of
  // 7, three of mantissa. The sign is ignored, and what would be NaN is 0, as in ggml.
  float Scale(int g) const {
    const int byte = d[g] & 0x7f;
    if (byte == 0x7f) return 0.0f;
    const int exponent = byte >> 3, mantissa = byte & 7;
    return exponent == 0 ? static_cast<float>(mantissa) * 0x1p-10f
                         : static_cast<float>((8 + mantissa) << (exponent - 1)) * 0x1p-10f;
  }
};
static_assert(sizeof(BlockNVFP4) == 36 && alignof(BlockNVFP4) == 1);

}  // namespace tandem::tensor

#endif  // TANDEM_COMMON_TENSOR_BLOCKS_OF_64_H_
