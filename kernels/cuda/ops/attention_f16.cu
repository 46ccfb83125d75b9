// Attention over pages of halves.
#include "kernels/cuda/ops/attention_page16.h"
#include "kernels/cuda/ops/attention_tensor.h"

namespace tandem::kernels::cuda {

void EncodeF16Attention(Stream& stream, AttentionArgs& args) {
  EncodeTensorAttention<Page16</*kBf16=*/false>>(stream, args);
}

}  // namespace tandem::kernels::cuda
