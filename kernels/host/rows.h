// Ops that only move rows: GatherRows and UnshardLogits. Shared by all backends on the host.
#ifndef TANDEM_KERNELS_HOST_ROWS_H_
#define TANDEM_KERNELS_HOST_ROWS_H_

#include "kernels/host/op_list.h"
#include "kernels/ops.h"

namespace tandem::kernels::host {

void EncodeGatherRows(OpList& list, const GatherRowsParams& params);
void EncodeUnshardLogits(OpList& list, const UnshardLogitsParams& params);

}  // namespace tandem::kernels::host

#endif  // TANDEM_KERNELS_HOST_ROWS_H_
