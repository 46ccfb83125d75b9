#include <algorithm>
#include <string>

#include "common/tensor/type.h"
#include "kernels/cuda/attention/plan.h"
#include "kernels/cuda/ops.h"

namespace tandem::kernels::cuda {
namespace {

// Target number of blocks per multiprocessor; launches with fewer split the context (split-KV).
constexpr uint32_t kBlocksPerMultiprocessor = 2;
// Upper bound on rows of partial results per multiprocessor; bounds the scratch of any step.
constexpr uint32_t kPartialRowsPerMultiprocessor = 128;

uint32_t CopyBytes(const void* data, uint32_t row_bytes) {
  for (const uint32_t size : {16u, 8u, 4u}) {
    if (row_bytes % size == 0 && reinterpret_cast<uintptr_t>(data) % size == 0) return size;
  }
  return 0;
}

PageRows Rows(tensor::Type type, const void* data, uint32_t dim) {
  const auto row_bytes = static_cast<uint32_t>(tensor::RowBytes(type, dim));
  return {.data = static_cast<const std::byte*>(data),
          .dim = dim,
          .row_bytes = row_bytes,
          // The tensor-core kernels read 16-bit rows in steps of 32 values.
          .chunks = type == tensor::Type::kF32 ? Blocks(dim, 4) : Blocks(dim, 32) * 4,
          .copy_bytes = CopyBytes(data, row_bytes)};
}

}  // namespace

void PlanAttention(Stream& stream, AttentionTile tile, AttentionArgs& args) {
  const AttentionParams& p = args.p;
  args.tile = tile;
  const uint64_t group = std::min(p.heads, p.heads_per_kv);
  const uint32_t per_seq = Blocks(p.max_query_len * group, tile.tile_rows);
  const uint64_t even = uint64_t{per_seq} * p.num_seqs;
  const uint64_t uneven = p.tokens * group / tile.tile_rows + p.num_seqs;
  args.tiles_per_seq = even <= uneven ? per_seq : 0;
  args.tiles = static_cast<uint32_t>(std::min(even, uneven));

  const uint64_t blocks = std::max<uint64_t>(uint64_t{args.tiles} * p.pages.kv_heads, 1);
  const uint64_t wanted = uint64_t{stream.multiprocessors()} * kBlocksPerMultiprocessor;
  const uint64_t rows = std::max<uint64_t>(uint64_t{p.tokens} * p.heads, 1);
  const uint64_t partial_rows = uint64_t{stream.multiprocessors()} * kPartialRowsPerMultiprocessor;
  uint64_t seen = p.max_context_len;  // positions visible to one tile's rows
  if (p.window != 0) seen = std::min(seen, uint64_t{p.window} + tile.tile_rows);
  const uint64_t most = std::min(Blocks(seen, kMinSplitPositions), kMaxSplits);
  args.splits = static_cast<uint32_t>(
      std::max<uint64_t>(std::min({wanted / blocks, partial_rows / rows, most}), 1));

  // Reserved even if this step does not split: a step with fewer rows than the planned one may
  // split.
  const uint64_t kept = most > 1 ? std::min(partial_rows, rows * most) : 0;
  const size_t sum_bytes = ScratchBytes(kept * p.pages.value_dim * sizeof(float));
  std::byte* const scratch = stream.Scratch(sum_bytes + kept * sizeof(float2));
  if (scratch == nullptr) return;
  args.sums = reinterpret_cast<float*>(scratch);
  args.states = reinterpret_cast<float2*>(scratch + sum_bytes);
}

void RefuseAttention(Stream& stream, const AttentionArgs& args, size_t bytes) {
  const KvPages& pages = args.p.pages;
  stream.NoteError("attention: heads of " + std::to_string(pages.head_dim) + " values with " +
                   std::string(tensor::Name(pages.type)) + " pages need " + std::to_string(bytes) +
                   " bytes of shared memory per block, this GPU has " +
                   std::to_string(stream.most_shared_bytes()));
}

void EncodeOp(Stream& stream, const AttentionParams& params) {
  const KvPages& pages = params.pages;
  if (params.tokens == 0 || params.num_seqs == 0 || params.max_query_len == 0) return;
  if (pages.value_dim > kMaxValueDim) {
    stream.NoteError("attention: values of " + std::to_string(pages.value_dim) + ", at most " +
                     std::to_string(kMaxValueDim));
    return;
  }
  AttentionArgs args{.p = params};
  args.k = Rows(pages.type, pages.k, pages.head_dim);
  args.v = pages.latent ? args.k : Rows(pages.type, pages.v, pages.value_dim);
  switch (pages.type) {
    case tensor::Type::kF32:
      return EncodeF32Attention(stream, args);
    case tensor::Type::kF16:
      return EncodeF16Attention(stream, args);
    case tensor::Type::kBF16:
      return EncodeBf16Attention(stream, args);
    case tensor::Type::kQ8_0:
      return EncodeQ8Attention(stream, args);
    default:
      stream.NoteError("attention: pages of type " + std::string(tensor::Name(pages.type)));
  }
}

}  // namespace tandem::kernels::cuda
