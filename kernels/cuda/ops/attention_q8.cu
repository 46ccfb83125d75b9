// Attention over pages of Q8_0, as halves.
#include "kernels/cuda/ops/attention_q8_tiles.h"
#include "kernels/cuda/ops/attention_tensor.h"

namespace tandem::kernels::cuda {
namespace {

struct Q8Page {
  template <uint32_t kPositions, uint32_t kThreads>
  using Tiles = Q8Tiles<kPositions, kThreads>;

  __device__ static uint16_t Round(float value) { return FloatToHalf(value); }
  __device__ static void Mma(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    MmaF16(c, a, b);
  }
};

}  // namespace

void EncodeQ8Attention(Stream& stream, AttentionArgs& args) {
  EncodeTensorAttention<Q8Page>(stream, args);
}

}  // namespace tandem::kernels::cuda
