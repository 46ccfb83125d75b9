// What the attention kernels share: what a launch is told, and how its blocks divide the work.
//
// The query rows of a sequence that read one KV head, (token, head of the group) with the head
// running fastest, are cut into tiles of `tile_rows`: a block reads K and V once for all of them.
// The positions that a tile sees are cut into tiles of `tile_positions` and these into splits, one
// block each, whose softmax states are merged by a second kernel. Grid: (row tiles of all
// sequences, KV heads, splits); it depends on host-known sizes alone, lengths are read on the
// device.
#ifndef TANDEM_KERNELS_CUDA_ATTENTION_PLAN_H_
#define TANDEM_KERNELS_CUDA_ATTENTION_PLAN_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/stream.h"
#include "kernels/ops.h"

namespace tandem::kernels::cuda {

// The K or V pages of a layer, as rows. Shared memory holds a row as `chunks` times 16 bytes and
// one more chunk that keeps rows out of each other's banks.
struct PageRows {
  const std::byte* data = nullptr;
  uint32_t dim = 0;
  uint32_t row_bytes = 0;
  uint32_t chunks = 0;  // what lies beyond dim is zero
  uint32_t copy_bytes =
      0;  // rows are whole pieces of so many bytes (16, 8, 4), aligned; 0: neither

  constexpr uint32_t stride() const { return chunks + 1; }
};

// What a kernel's blocks look like.
struct AttentionTile {
  uint32_t tile_rows = 0;
  uint32_t tile_positions = 0;
};

struct AttentionArgs {
  AttentionParams p;
  AttentionTile tile{};
  PageRows k{};
  PageRows v{};                // latent: as k
  uint32_t tiles_per_seq = 0;  // 0: tiles of a sequence begin where FirstTile says
  uint32_t tiles = 0;          // row tiles of all sequences, at most
  uint32_t splits = 1;         // at most kMaxSplits
  float* sums = nullptr;       // (splits, tokens * heads, value_dim): weighted sums of V
  float2* states = nullptr;    // (splits, tokens * heads): maximum, sum of weights
};

inline constexpr uint32_t kMaxSplits = 128;
// A split is worth a block from this many positions on.
inline constexpr uint32_t kMinSplitPositions = 128;
inline constexpr uint32_t kMaxValueDim = 512;

// Divides the work among blocks of `tile` and takes scratch. Needs p, k and v.
void PlanAttention(Stream& stream, AttentionTile tile, AttentionArgs& args);

// One launch each, and a merge if there are splits; for pages of one type.
void EncodeF16Attention(Stream& stream, AttentionArgs& args);
void EncodeBf16Attention(Stream& stream, AttentionArgs& args);
void EncodeQ8Attention(Stream& stream, AttentionArgs& args);
void EncodeF32Attention(Stream& stream, AttentionArgs& args);
void EncodeAttentionMerge(Stream& stream, const AttentionArgs& args);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_ATTENTION_PLAN_H_
