// Ops that go over memory once and are never what a step waits for: LayerNorm, AddRows, CopyRows,
// SoftCap. Shared by all backends on the host: plain loops, sums in double.
#ifndef TANDEM_KERNELS_HOST_ELEMENTWISE_H_
#define TANDEM_KERNELS_HOST_ELEMENTWISE_H_

#include "kernels/host/op_list.h"
#include "kernels/ops.h"

namespace tandem::kernels::host {

void EncodeLayerNorm(OpList& list, const LayerNormParams& params);
void EncodeAddRows(OpList& list, const AddRowsParams& params);
void EncodeCopyRows(OpList& list, const CopyRowsParams& params);
void EncodeSoftCap(OpList& list, const SoftCapParams& params);

}  // namespace tandem::kernels::host

#endif  // TANDEM_KERNELS_HOST_ELEMENTWISE_H_
