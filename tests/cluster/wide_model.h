// Models of the golden ones' architectures with random weights, wide enough for quantisation blocks
// of 256 values: one file in a quantised type, and one with the same weights in F32.
#ifndef TANDEM_TESTS_CLUSTER_WIDE_MODEL_H_
#define TANDEM_TESTS_CLUSTER_WIDE_MODEL_H_

#include <cstdint>
#include <string>

#include "common/tensor/type.h"

namespace tandem::testing {

struct WideModel {
  std::string quantised;    // a path
  std::string dequantised;  // likewise
  uint32_t num_layers = 0;
};

// The metadata are those of the golden model `name`, such as "qwen35", with other sizes. Matrices
// are of `type` (of those in ScaleOf), of Q8_0 where their columns or a rank's of two don't fill
// blocks of it; what quantisers leave alone stays F32: vectors, routers, gates of recurrent layers.
// With NVFP4 every matrix that can have a scale has one, in F32 its values are multiplied by it.
// Written to the test's folder.
WideModel WriteWideModel(const std::string& name, tensor::Type type);

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_CLUSTER_WIDE_MODEL_H_
