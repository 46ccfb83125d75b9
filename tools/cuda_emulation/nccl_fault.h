// Errors of the emulated NCCL that arrive late.
#ifndef TANDEM_TOOLS_CUDA_EMULATION_NCCL_FAULT_H_
#define TANDEM_TOOLS_CUDA_EMULATION_NCCL_FAULT_H_

#include <nccl.h>

namespace tandem::emulation {

struct NcclFault {
  int rank = -1;  // -1: none
  int polls = 0;  // answered as if nothing had happened
  ncclResult_t result = ncclSuccess;
};

// From now on ncclCommGetAsyncError gives the fault's result on communicators of its rank in this
// process, after so many polls, and their collectives end only by ncclCommAbort. Replaces an
// earlier fault.
void FailNcclLater(const NcclFault& fault);

}  // namespace tandem::emulation

#endif  // TANDEM_TOOLS_CUDA_EMULATION_NCCL_FAULT_H_
