// Attention over BF16 pages.
#include "kernels/cuda/attention/page16.h"
#include "kernels/cuda/attention/tensor_launch.h"

namespace tandem::kernels::cuda {

void EncodeBf16Attention(Stream& stream, AttentionArgs& args) {
  EncodeTensorAttention<Page16</*kBf16=*/true>>(stream, args);
}

}  // namespace tandem::kernels::cuda
