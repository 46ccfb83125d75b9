// Ops that are not written yet: each refuses.
#include "kernels/cuda/ops/ops.h"

namespace tandem::kernels::cuda {

void EncodeExpertMatMul(Stream& stream, const ExpertMatMulParams&) {
  stream.NoteError("ExpertMatMul is not there yet");
}

}  // namespace tandem::kernels::cuda
