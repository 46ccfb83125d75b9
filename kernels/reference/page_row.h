// Rows of KV pages in every type that pages may have, scalar.
#ifndef TANDEM_KERNELS_REFERENCE_PAGE_ROW_H_
#define TANDEM_KERNELS_REFERENCE_PAGE_ROW_H_

#include <cstddef>
#include <cstdint>

#include "common/tensor/type.h"

namespace tandem::kernels::reference {

// Writes `dim` values as a row of `type`: F32, F16 and BF16 rounded to nearest. Q8_0: per block of
// 32 values the scale is the largest magnitude / 127 as a half, and each value is divided by that
// half, rounded to nearest (ties to even) and kept within +-127; a block with a value that is not
// finite, or above 127 times the largest F16 number, reads back as NaN. tensor::Dequantize reads
// rows. REQUIRES: `dim` is a multiple of the type's block.
void StorePageRow(tensor::Type type, const float* values, uint32_t dim, std::byte* row);

}  // namespace tandem::kernels::reference

#endif  // TANDEM_KERNELS_REFERENCE_PAGE_ROW_H_
