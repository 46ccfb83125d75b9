// Attention over F16 pages.
#include "kernels/cuda/attention/page16.h"
#include "kernels/cuda/attention/tensor_launch.h"

namespace tandem::kernels::cuda {

void EncodeF16Attention(Stream& stream, AttentionArgs& args) {
  EncodeTensorAttention<Page16</*kBf16=*/false>>(stream, args);
}

}  // namespace tandem::kernels::cuda
