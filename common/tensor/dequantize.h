// The scalar reference of every weight format: converts blocks to floats, bit for bit as the format
// defines.
//
// Thread-safe: pure functions of their arguments.
#ifndef TANDEM_COMMON_TENSOR_DEQUANTIZE_H_
#define TANDEM_COMMON_TENSOR_DEQUANTIZE_H_

#include <cstddef>

#include "common/tensor/type.h"

namespace tandem::tensor {

// Writes `values` floats to `out`. `blocks` holds RowBytes(type, values) bytes, aligned as the
// block struct is (4 for F32, 2 for the rest), which a GGUF file's tensors always are. REQUIRES:
// Traits(type).supported, and `values` is a multiple of its block_values.
void Dequantize(Type type, const std::byte* blocks, float* out, size_t values);

}  // namespace tandem::tensor

#endif  // TANDEM_COMMON_TENSOR_DEQUANTIZE_H_
