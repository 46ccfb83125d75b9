// Attention over pages of bfloat16s.
#include "kernels/cuda/ops/attention_tensor.h"
#include "kernels/cuda/ops/attention_tiles.h"

namespace tandem::kernels::cuda {
namespace {

struct Bf16Page {
  static constexpr uint32_t kChunkValues = 8;
  template <uint32_t kPositions, uint32_t kThreads>
  using Tiles = KvTiles<Bf16Page, kPositions, kThreads, 2>;

  // Values [8 chunk, 8 chunk + 8) of a row of dim, zeros behind it.
  __device__ static uint4 Chunk(const std::byte* row, uint32_t chunk, uint32_t dim) {
    return Chunk16(row, chunk, dim);
  }
  __device__ static uint16_t Round(float value) { return FloatToBf16(value); }
  __device__ static void Mma(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    MmaBf16(c, a, b);
  }
};

}  // namespace

void EncodeBf16Attention(Stream& stream, AttentionArgs& args) {
  EncodeTensorAttention<Bf16Page>(stream, args);
}

}  // namespace tandem::kernels::cuda
