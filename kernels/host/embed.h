// Embed: rows of a table, dequantised. Shared by all backends on the host: there is nothing to add
// up.
#ifndef TANDEM_KERNELS_HOST_EMBED_H_
#define TANDEM_KERNELS_HOST_EMBED_H_

#include "kernels/host/op_list.h"
#include "kernels/ops.h"

namespace tandem::kernels::host {

void EncodeEmbed(OpList& list, const EmbedParams& params);

}  // namespace tandem::kernels::host

#endif  // TANDEM_KERNELS_HOST_EMBED_H_
