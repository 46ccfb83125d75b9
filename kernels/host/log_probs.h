// LogProbs: log-softmax of whole rows, read at some ids. Shared by all backends on the host.
//
// Three kinds of passes over a row: its largest logit; the sum of exp(logit - largest) in double;
// and, for every id that is asked for, how many logits are larger. The top ids are kept in a short
// sorted list on the way, which few logits enter.
#ifndef TANDEM_KERNELS_HOST_LOG_PROBS_H_
#define TANDEM_KERNELS_HOST_LOG_PROBS_H_

#include "kernels/host/op_list.h"
#include "kernels/ops.h"

namespace tandem::kernels::host {

void EncodeLogProbs(OpList& list, const LogProbsParams& params);

}  // namespace tandem::kernels::host

#endif  // TANDEM_KERNELS_HOST_LOG_PROBS_H_
