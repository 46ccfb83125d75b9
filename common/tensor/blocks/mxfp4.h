// MXFP4: 32 values of FP4 (E2M1) with one power of two as their scale.
//
// value[i] = 2^(e - 128) * codebook[q[i]], kMxfp4Codebook, whose values are doubled: the standard's
// scale is 2^(e - 127). Byte j holds value j in its low half and value j + 16 in its high half.
// In the standard e = 255 is NaN; here, as in ggml, it is an ordinary power of two.
// Source: Open Compute Project, "OCP Microscaling Formats (MX) Specification", MXFP4.
// Layout: https://github.com/ggml-org/ggml (block_mxfp4).
#ifndef TANDEM_COMMON_TENSOR_BLOCKS_MXFP4_H_
#define TANDEM_COMMON_TENSOR_BLOCKS_MXFP4_H_

#include <cstdint>

#include "common/tensor/blocks/codebook.h"

namespace tandem::tensor {

struct BlockMXFP4 {
  static constexpr int kValues = 32;
  uint8_t e;       // exponent of the scale
  uint8_t qs[16];  // two values per byte
};
static_assert(sizeof(BlockMXFP4) == 17 && alignof(BlockMXFP4) == 1);

}  // namespace tandem::tensor

#endif  // TANDEM_COMMON_TENSOR_BLOCKS_MXFP4_H_
