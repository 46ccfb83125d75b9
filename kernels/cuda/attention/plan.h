// Shared by the attention kernels: launch arguments, and how blocks divide the work.
//
// The query rows of a sequence that read one KV head, (token, head of the group) with the head
// varying fastest, are cut into tiles of `tile_rows`: a block reads K and V once for all of them.
// The positions visible to a row tile are cut at multiples of `piece_positions` into pieces. Each
// piece has its own softmax state and weighted sums, and pieces are merged in a binary tree
// that depends on their numbers alone (partials.h): a row's bits depend on what it attends to and
// not on the batch.
//
// The work list of a launch (work_list.h) is all pieces of all row tiles and KV heads, in order,
// and every block computes an equal share of it, by count of tiles of positions. Its length comes
// from the context lengths, which are read on the device; the grid comes from sizes known to the
// host, so that a captured launch is right for any lengths. Sequences with few query rows and with
// many are launched apart, each with row tiles of their size (RowClass).
#ifndef TANDEM_KERNELS_CUDA_ATTENTION_PLAN_H_
#define TANDEM_KERNELS_CUDA_ATTENTION_PLAN_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/device/int8_group.h"
#include "kernels/cuda/rows/bf16_rows.h"
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
  uint32_t piece_positions = 0;  // tile_positions times a power of two
  // Blocks of a multiprocessor, if its shared memory has room: one loads while another computes.
  uint32_t blocks = 2;

  constexpr uint32_t piece_tiles() const { return piece_positions / tile_positions; }
};

// The sequences of a launch: those with more than `above` query rows per KV head, up to `upto`.
struct RowClass {
  uint32_t above = 0;
  uint32_t upto = 0;
};
// One token of a decode step, a few to verify, and chunks of prompts.
inline constexpr RowClass kFewRows = {0, 16};
inline constexpr RowClass kSomeRows = {16, 32};
inline constexpr RowClass kManyRows = {32, 0xffffffffu};
inline constexpr RowClass kAllRows = {0, 0xffffffffu};

// Tiles of positions, as they are in the pages, that a block has in shared memory at once, at most.
inline constexpr uint32_t kMostStages = 4;

// Scores, also those of states, are in units of log 2: weights are powers of two, which take one
// instruction.
inline constexpr float kLog2E = 1.44269504088896340736f;

struct ShareRecord;  // partials.h
inline constexpr size_t kShareRecordBytes = 96;

// Where the rows go that a product reads: in BF16, or a single one as groups, which lie within
// heads.
struct RoundedAttention {
  bool in_bytes = false;
  Int8Group* groups = nullptr;
  Bf16Rows bf16{};
};

struct AttentionArgs {
  AttentionParams p;
  AttentionTile tile{};
  uint32_t stages = 2;
  RowClass rows{};
  PageRows k{};
  PageRows v{};                // if latent: same as k
  uint32_t tiles_per_seq = 0;  // 0: a sequence's tiles begin at FirstTile
  uint32_t tiles = 0;          // upper bound on row tiles of all sequences
  bool even_groups = false;    // all KV heads have as many query heads
  uint32_t piece_shift = 0;    // a piece has 2^piece_shift tiles of positions
  uint32_t pieces = 0;         // upper bound on the pieces of a row tile
  float score_factor = 0;      // what products of query and key, or capped ones, are scaled with
  float cap_ratio = 0;         // scale / softcap, if there is one
  bool wide_queries = false;   // queries are whole, aligned runs of four floats
  uint32_t shares = 0;         // blocks that divide the work list
  // Partial results of a share: head_slots for a row tile that begins in it, tail_slots for one
  // that began before; each slot has slot_rows rows. No slots: every row tile is one piece.
  uint32_t head_slots = 0;
  uint32_t tail_slots = 0;
  uint32_t slot_rows = 0;
  uint32_t sum_stride = 0;         // value_dim, rounded up to an even number
  float* sums = nullptr;           // (shares * (head_slots + tail_slots), slot_rows, sum_stride)
  float2* states = nullptr;        // (..., slot_rows): maximum, sum of weights
  ShareRecord* records = nullptr;  // (shares), for the merge
  // Whether the merge rounds the output, of all rows: those that a block has alone come from p.out,
  // where it has written them.
  bool rounds = false;
  RoundedAttention rounded{};

  // Pieces that begin before a tile of positions, counted from position 0.
  __host__ __device__ uint32_t PiecesUpTo(uint32_t kv_tile) const {
    return (kv_tile + (1u << piece_shift) - 1) >> piece_shift;
  }
};

inline constexpr uint32_t kMaxValueDim = 512;
inline constexpr uint32_t kShortestPiece = 128;  // in positions, of all kernels

// Blocks that the shared memory of a multiprocessor has room for: what one block may have at most,
// and what the GPU reserves for each.
size_t BlocksThatFit(const Stream& stream, size_t shared_bytes);

// The most query rows of one KV head that a sequence of this call can have.
uint64_t MostRows(const AttentionParams& p);

// Divides the work among blocks of `tile` that take `shared_bytes` each, and reserves scratch, also
// for a step without sequences of the class: another one of no larger sizes may have them. Requires
// p, k, v and rows. Returns whether there may be such sequences, that is, whether to launch.
bool PlanAttention(Stream& stream, AttentionTile tile, size_t shared_bytes, AttentionArgs& args);

// Notes the error that no block shape fits, naming the heads, `bytes` of the smallest one, and what
// the GPU has.
void RefuseAttention(Stream& stream, const AttentionArgs& args, size_t bytes);

// Each launches the kernels for pages of one type, and after each the merge of what its blocks have
// shared, if they may share something or rows are to be rounded.
void EncodeF16Attention(Stream& stream, AttentionArgs& args);
void EncodeBf16Attention(Stream& stream, AttentionArgs& args);
void EncodeQ8Attention(Stream& stream, AttentionArgs& args);
void EncodeF32Attention(Stream& stream, AttentionArgs& args);
void EncodeAttentionMerge(Stream& stream, const AttentionArgs& args);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_ATTENTION_PLAN_H_
