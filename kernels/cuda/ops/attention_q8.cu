// Attention over pages of Q8_0: blocks of a half, the scale, and 32 signed bytes. They become
// halves on their way to shared memory.
#include "kernels/cuda/ops/attention_tensor.h"

namespace tandem::kernels::cuda {
namespace {

struct Q8Page {
  static constexpr uint32_t kChunkValues = 8;
  static constexpr uint32_t kBlockBytes = 34;

  // Values [8 chunk, 8 chunk + 8) of a row; its dim is a multiple of 32.
  __device__ static uint4 Chunk(const std::byte* row, uint32_t chunk, uint32_t) {
    const auto* const block = reinterpret_cast<const uint16_t*>(row + chunk / 4 * kBlockBytes);
    const float scale = HalfToFloat(block[0]);
    uint32_t words[4];
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) {
      const uint16_t pair = block[1 + chunk % 4 * 4 + i];
      const auto low = static_cast<float>(static_cast<int8_t>(pair & 0xff));
      const auto high = static_cast<float>(static_cast<int8_t>(pair >> 8));
      words[i] = Pack(FloatToHalf(scale * low), FloatToHalf(scale * high));
    }
    return make_uint4(words[0], words[1], words[2], words[3]);
  }
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
