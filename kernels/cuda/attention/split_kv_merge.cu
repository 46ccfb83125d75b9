// Merges a row's partial attention results, one per split of its context, into its output.
//
// Floor: reads splits * (value_dim + 2) floats per query row and head, writes value_dim.
#include "kernels/cuda/attention/online_softmax.h"
#include "kernels/cuda/device/warp.h"

namespace tandem::kernels::cuda {
namespace {

constexpr uint32_t kThreads = 128;
static_assert(kMaxSplits <= kThreads);

// The last sequence that begins at or before a token; empty sequences have no tokens.
__device__ uint32_t SequenceOfToken(const AttentionParams& p, int32_t token) {
  uint32_t low = 0, high = p.num_seqs;
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    (p.query_offsets[middle] <= token ? low : high) = middle;
  }
  return low;
}

// One block per (token, head).
__global__ void __launch_bounds__(kThreads) AttentionMergeKernel(const AttentionArgs a) {
  const AttentionParams& p = a.p;
  const uint32_t token = blockIdx.x / p.heads, head = blockIdx.x % p.heads;
  if (static_cast<int32_t>(token) >= p.query_offsets[p.num_seqs]) return;
  const uint32_t seq = SequenceOfToken(p, static_cast<int32_t>(token));
  const uint32_t kv_head = (p.first_head + head) / p.heads_per_kv - p.first_kv_head;
  const RowTile first = TileOfSequence(a, seq, 0, kv_head);
  const uint32_t row = (token - first.first_token) * first.heads + head - first.first_head;
  const RowTile tile = TileOfSequence(a, seq, row / a.tile.tile_rows, kv_head);
  const uint32_t used = TilesOfSplit(a, tile, 0).used;
  if (used == 1) return;  // already in the output

  SharedArena arena;
  const SharedArray<float> room = arena.Take<float>(kBlockReduceRoom);
  const SharedArray<float> factors = arena.Take<float>(kMaxSplits);
  const size_t rows = static_cast<size_t>(p.tokens) * p.heads;
  const bool mine = threadIdx.x < used;
  const float2 part = mine ? a.states[threadIdx.x * rows + blockIdx.x] : make_float2(kNegInf, 0);
  SoftmaxState state;
  state.UpdateMax(BlockMax(part.x, room));
  const float weight = expf(part.x - state.base());
  state.sum = BlockSum(weight * part.y, room);
  const SoftmaxState with_sink = state.WithSink(p, head);
  const float sink_decay = expf(state.largest - with_sink.base());
  if (mine) factors[threadIdx.x] = weight * sink_decay / with_sink.sum;
  __syncthreads();

  const uint32_t columns = p.pages.value_dim;
  for (uint32_t column = threadIdx.x; column < columns; column += kThreads) {
    float sum = 0;
    for (uint32_t split = 0; split < used; ++split) {
      sum += factors[split] * a.sums[(split * rows + blockIdx.x) * columns + column];
    }
    p.out[static_cast<size_t>(blockIdx.x) * columns + column] = sum;
  }
}

}  // namespace

void EncodeAttentionMerge(Stream& stream, const AttentionArgs& args) {
  if (args.splits == 1) return;
  stream.Launch("attention_merge", &AttentionMergeKernel, args.p.tokens * args.p.heads, kThreads,
                SharedBytes<float>(kBlockReduceRoom) + SharedBytes<float>(kMaxSplits), args);
}

}  // namespace tandem::kernels::cuda
