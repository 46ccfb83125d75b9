// Activate whose rows a product reads as int8 groups alone: they are rounded as they are computed.
#ifndef TANDEM_KERNELS_CUDA_ROWS_ACTIVATE_TO_BYTES_H_
#define TANDEM_KERNELS_CUDA_ROWS_ACTIVATE_TO_BYTES_H_

#include "kernels/cuda/rows/quantize_rows.h"
#include "kernels/cuda/stream.h"
#include "kernels/ops.h"

namespace tandem::kernels::cuda {

// `columns`: those of the weight that the rows' values are for. params.out is not written.
void EncodeActivateToBytes(Stream& stream, const ActivateParams& params, ColumnRange columns,
                           Int8Group* to);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_ROWS_ACTIVATE_TO_BYTES_H_
