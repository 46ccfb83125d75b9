// Ops that are not written yet: each refuses.
#include "kernels/cuda/ops/ops.h"

namespace tandem::kernels::cuda {

void EncodeEmbed(Stream& stream, const EmbedParams&) { stream.NoteError("Embed is not there yet"); }
void EncodeMatMul(Stream& stream, DenseGemm&, const MatMulParams&) {
  stream.NoteError("MatMul is not there yet");
}
void EncodeExpertMatMul(Stream& stream, const ExpertMatMulParams&) {
  stream.NoteError("ExpertMatMul is not there yet");
}
void EncodeSample(Stream& stream, const SampleParams&) {
  stream.NoteError("Sample is not there yet");
}
void EncodeLogProbs(Stream& stream, const LogProbsParams&) {
  stream.NoteError("LogProbs is not there yet");
}

}  // namespace tandem::kernels::cuda
