// Shared by the attention kernels: launch arguments, and how blocks divide the work.
//
// The query rows of a sequence that read one KV head, (token, head of the group) with the head
// varying fastest, are cut into tiles of `tile_rows`: a block reads K and V once for all of them.
// The positions visible to a tile are cut into tiles of `tile_positions`, and these into splits of
// one block each, whose softmax states are merged by a second kernel (split-KV). Grid: (row tiles
// of all sequences, KV heads, splits); it depends only on sizes known to the host; lengths are read
// on the device.
#ifndef TANDEM_KERNELS_CUDA_ATTENTION_PLAN_H_
#define TANDEM_KERNELS_CUDA_ATTENTION_PLAN_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/stream.h"
#include "kernels/ops.h"

namespace tandem::kernels::cuda {

// The K or V pages of a layer, as rows. In shared memory a row takes `chunks` times 16 bytes plus
// one chunk of padding against bank conflicts.
struct PageRows {
  const std::byte* data = nullptr;
  uint32_t dim = 0;
  uint32_t row_bytes = 0;
  uint32_t chunks = 0;  // zero-padded beyond dim
  uint32_t copy_bytes =
      0;  // aligned pieces of this many bytes (16, 8, 4) make up a row; 0: unaligned

  constexpr uint32_t stride() const { return chunks + 1; }
};

// Block shape of a kernel.
struct AttentionTile {
  uint32_t tile_rows = 0;
  uint32_t tile_positions = 0;
};

struct AttentionArgs {
  AttentionParams p;
  AttentionTile tile{};
  PageRows k{};
  PageRows v{};                // if latent: same as k
  uint32_t tiles_per_seq = 0;  // 0: a sequence's tiles begin at FirstTile
  uint32_t tiles = 0;          // upper bound on row tiles of all sequences
  uint32_t splits = 1;         // at most kMaxSplits
  float* sums = nullptr;       // (splits, tokens * heads, value_dim): weighted sums of V
  float2* states = nullptr;    // (splits, tokens * heads): maximum, sum of weights
};

inline constexpr uint32_t kMaxSplits = 128;
// Minimum positions per split that justify a block.
inline constexpr uint32_t kMinSplitPositions = 128;
inline constexpr uint32_t kMaxValueDim = 512;

// Divides the work among blocks of `tile` and reserves scratch. Requires p, k and v.
void PlanAttention(Stream& stream, AttentionTile tile, AttentionArgs& args);

// Notes the error that no block shape fits, naming the heads, `bytes` of the smallest one, and what
// the GPU has.
void RefuseAttention(Stream& stream, const AttentionArgs& args, size_t bytes);

// Each launches the kernel for pages of one type, then the merge if there are splits.
void EncodeF16Attention(Stream& stream, AttentionArgs& args);
void EncodeBf16Attention(Stream& stream, AttentionArgs& args);
void EncodeQ8Attention(Stream& stream, AttentionArgs& args);
void EncodeF32Attention(Stream& stream, AttentionArgs& args);
void EncodeAttentionMerge(Stream& stream, const AttentionArgs& args);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_ATTENTION_PLAN_H_
