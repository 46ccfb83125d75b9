// Attention over pages of Q8_0, as halves.
#include "kernels/cuda/attention/page16.h"
#include "kernels/cuda/attention/q8_tiles.h"
#include "kernels/cuda/attention/tensor_core.h"

namespace tandem::kernels::cuda {
namespace {

// Halves but for the way in which tiles come to shared memory.
struct Q8Page : Page16</*kBf16=*/false> {
  template <uint32_t kPositions, uint32_t kThreads>
  using Tiles = Q8Tiles<kPositions, kThreads>;
};

}  // namespace

void EncodeQ8Attention(Stream& stream, AttentionArgs& args) {
  EncodeTensorAttention<Q8Page>(stream, args);
}

}  // namespace tandem::kernels::cuda
