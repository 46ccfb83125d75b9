// Route: a mixture's top-k in one pass over a token's logits. Shared by all backends on the host.
#ifndef TANDEM_KERNELS_HOST_ROUTE_H_
#define TANDEM_KERNELS_HOST_ROUTE_H_

#include "kernels/host/op_list.h"
#include "kernels/ops.h"

namespace tandem::kernels::host {

void EncodeRoute(OpList& list, const RouteParams& params);

}  // namespace tandem::kernels::host

#endif  // TANDEM_KERNELS_HOST_ROUTE_H_
