// Attention over Q8_0 pages, dequantised to F16.
#include "kernels/cuda/attention/page16.h"
#include "kernels/cuda/attention/q8_tiles.h"
#include "kernels/cuda/attention/tensor_launch.h"

namespace tandem::kernels::cuda {
namespace {

// F16 pages, except for how tiles are loaded to shared memory.
struct Q8Page : Page16</*kBf16=*/false> {
  template <uint32_t kPositions, uint32_t kThreads, uint32_t>
  using Tiles = Q8Tiles<kPositions, kThreads>;
};

}  // namespace

void EncodeQ8Attention(Stream& stream, AttentionArgs& args) {
  EncodeTensorAttention<Q8Page>(stream, args);
}

}  // namespace tandem::kernels::cuda
