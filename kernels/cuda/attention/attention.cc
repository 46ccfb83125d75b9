#include "kernels/cuda/attention/attention.h"

#include <algorithm>
#include <bit>
#include <string>

#include "common/tensor/type.h"
#include "kernels/cuda/attention/plan.h"
#include "kernels/cuda/ops.h"

namespace tandem::kernels::cuda {
namespace {

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

uint32_t Group(const AttentionParams& p) { return std::min(p.heads, p.heads_per_kv); }

// Whether a sequence of this step may be of the class, by the sizes that the host knows.
bool MayHave(const AttentionParams& p, RowClass rows) {
  const uint64_t most = MostRows(p);
  const bool equal = uint64_t{p.num_seqs} * p.max_query_len == p.tokens;  // query lengths
  return most > rows.above && Group(p) <= rows.upto && (!equal || most <= rows.upto);
}

// Upper bound on the pieces of a row tile. Windows need not begin with a piece.
uint32_t MostPieces(const AttentionParams& p, AttentionTile tile) {
  const uint32_t all = std::max(Blocks(p.max_context_len, tile.piece_positions), 1u);
  if (p.window == 0) return all;
  return std::min(all, Blocks(uint64_t{p.window} + tile.tile_rows, tile.piece_positions) + 1);
}

void PlanRowTiles(AttentionTile tile, AttentionArgs& args) {
  const AttentionParams& p = args.p;
  args.tile = tile;
  args.piece_shift = static_cast<uint32_t>(std::bit_width(tile.piece_tiles()) - 1);
  args.even_groups = p.pages.kv_heads == 1 ||
                     (p.first_head % p.heads_per_kv == 0 && p.heads % p.heads_per_kv == 0);
  const uint64_t rows = std::min<uint64_t>(MostRows(p), args.rows.upto);
  const uint32_t per_seq = Blocks(rows, tile.tile_rows);
  const uint64_t even = uint64_t{per_seq} * p.num_seqs;
  const uint64_t uneven = uint64_t{p.tokens} * Group(p) / tile.tile_rows + p.num_seqs;
  args.tiles_per_seq = even <= uneven ? per_seq : 0;
  args.tiles = static_cast<uint32_t>(std::min(even, uneven));
  args.slot_rows = static_cast<uint32_t>(std::min<uint64_t>(rows, tile.tile_rows));
}

}  // namespace

size_t BlocksThatFit(const Stream& stream, size_t shared_bytes) {
  constexpr size_t kReserved = 1024;
  return (stream.most_shared_bytes() + kReserved) / (shared_bytes + kReserved);
}

uint64_t MostRows(const AttentionParams& p) { return uint64_t{p.max_query_len} * Group(p); }

bool PlanAttention(Stream& stream, AttentionTile tile, size_t shared_bytes, AttentionArgs& args) {
  const AttentionParams& p = args.p;
  PlanRowTiles(tile, args);
  const uint64_t items = uint64_t{args.tiles} * p.pages.kv_heads;
  const uint32_t pieces = MostPieces(p, tile);
  if (items * (Blocks(p.max_context_len, tile.tile_positions) + 1) > UINT32_MAX) {
    stream.NoteError("attention: " + std::to_string(p.num_seqs) + " contexts of up to " +
                     std::to_string(p.max_context_len) + " positions are beyond 32-bit counts");
    return false;
  }
  const size_t of_each = std::clamp<size_t>(BlocksThatFit(stream, shared_bytes), 1, tile.blocks);
  args.shares =
      static_cast<uint32_t>(std::min<uint64_t>(stream.multiprocessors() * of_each, items * pieces));
  args.pieces = pieces;
  // A run of n pieces is at most this many nodes of the tree (partials.h).
  const auto levels = static_cast<uint32_t>(std::bit_width(pieces));
  args.head_slots = pieces == 1 ? 0 : levels;
  args.tail_slots = pieces == 1 ? 0 : 2 * (levels - 1);
  args.sum_stride = Blocks(p.pages.value_dim, 2) * 2;
  const size_t kept = size_t{args.shares} * (args.head_slots + args.tail_slots) * args.slot_rows;
  const size_t sum_bytes = ScratchBytes(kept * args.sum_stride * sizeof(float));
  const size_t state_bytes = ScratchBytes(kept * sizeof(float2));
  const size_t record_bytes = args.shares * kShareRecordBytes;
  std::byte* const scratch = stream.Scratch(sum_bytes + state_bytes + record_bytes);
  if (scratch != nullptr) {
    args.records = reinterpret_cast<ShareRecord*>(scratch + sum_bytes + state_bytes);
    args.sums = reinterpret_cast<float*>(scratch);
    args.states = reinterpret_cast<float2*>(scratch + sum_bytes);
  }
  return MayHave(p, args.rows);
}

void RefuseAttention(Stream& stream, const AttentionArgs& args, size_t bytes) {
  const KvPages& pages = args.p.pages;
  stream.NoteError("attention: heads of " + std::to_string(pages.head_dim) + " values with " +
                   std::string(tensor::Name(pages.type)) + " pages need " + std::to_string(bytes) +
                   " bytes of shared memory per block, this GPU has " +
                   std::to_string(stream.most_shared_bytes()));
}

namespace {

void Encode(Stream& stream, AttentionArgs args) {
  const AttentionParams& params = args.p;
  const KvPages& pages = params.pages;
  if (params.tokens == 0 || params.num_seqs == 0 || params.max_query_len == 0) return;
  if (pages.value_dim > kMaxValueDim) {
    stream.NoteError("attention: values of " + std::to_string(pages.value_dim) + ", at most " +
                     std::to_string(kMaxValueDim));
    return;
  }
  args.k = Rows(pages.type, pages.k, pages.head_dim);
  args.score_factor = (params.softcap == 0 ? params.scale : 1.0f) * kLog2E;
  args.cap_ratio = params.softcap == 0 ? 0 : params.scale / params.softcap;
  args.wide_queries =
      pages.head_dim % 4 == 0 && reinterpret_cast<uintptr_t>(params.q) % sizeof(float4) == 0;
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

}  // namespace

bool AttentionRounds(const AttentionParams& params, const RoundedAttention& to) {
  return params.max_context_len > kShortestPiece &&
         (!to.in_bytes || params.pages.value_dim % 32 == 0);
}

void EncodeOp(Stream& stream, const AttentionParams& params) { Encode(stream, {.p = params}); }

void EncodeAttention(Stream& stream, const AttentionParams& params, const RoundedAttention& to) {
  Encode(stream, {.p = params, .rounds = true, .rounded = to});
}

}  // namespace tandem::kernels::cuda
