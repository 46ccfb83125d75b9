// As KvTiles, for Q8_0 pages (blocks of an F16 scale and 32 signed bytes): rows are copied as they
// are, in stages, and the current tile is dequantised to F16 in shared memory.
#ifndef TANDEM_KERNELS_CUDA_ATTENTION_Q8_TILES_H_
#define TANDEM_KERNELS_CUDA_ATTENTION_Q8_TILES_H_

#include "kernels/cuda/attention/tile_cursor.h"
#include "kernels/cuda/device/async_copy.h"
#include "kernels/cuda/device/scaled_halves.h"

namespace tandem::kernels::cuda {

template <uint32_t kPositions, uint32_t kThreads>
class Q8Tiles {
  static_assert(kPositions <= kThreads);

 public:
  static size_t SharedBytesOf(const AttentionArgs& a) {
    size_t row = a.k.stride() + a.stages * RawChunks(a.k);
    if (!a.p.pages.latent) row += a.v.stride() + a.stages * RawChunks(a.v);
    return kPositions * row * sizeof(uint4) + TileCursor<kPositions>::kSharedBytes;
  }

  __device__ Q8Tiles(const AttentionArgs& a, SharedArray<Assignment> current, SharedArena& arena)
      : a_(a),
        k_(arena.Take<uint4>(kPositions * a.k.stride())),
        v_(a.p.pages.latent ? k_ : arena.Take<uint4>(kPositions * a.v.stride())),
        raw_k_(arena.Take<uint4>(a.stages * kPositions * RawChunks(a.k))),
        raw_v_(a.p.pages.latent ? raw_k_
                                : arena.Take<uint4>(a.stages * kPositions * RawChunks(a.v))),
        cursor_(a, current, arena) {}

  __device__ void StartLoads() {
    const uint32_t ahead = a_.stages - 1;
    cursor_.Begin(ahead);
    __syncthreads();
    for (uint32_t i = 0; i < ahead; ++i) Load(cursor_.next() + i, i);
    stage_ = 0;
  }

  __device__ bool WaitForTile() {
    const uint32_t tile = cursor_.next(), ahead = a_.stages - 1;
    if (tile >= cursor_.end()) return false;
    WaitForFirstOf(ahead);
    cursor_.Keep(tile + ahead);
    __syncthreads();  // the tile before this one is no longer in use
    Load(tile + ahead, stage_ == 0 ? ahead : stage_ - 1);
    cursor_.Fetch(tile + ahead + 1);
    const SharedArray<uint32_t> rows = cursor_.Rows(tile);
    Convert(k_, Stage(raw_k_, a_.k, stage_), rows, a_.k);
    if (!a_.p.pages.latent) Convert(v_, Stage(raw_v_, a_.v, stage_), rows, a_.v);
    __syncthreads();
    return true;
  }

  __device__ void ReleaseTile() {
    cursor_.Advance();
    stage_ = stage_ + 1 == a_.stages ? 0 : stage_ + 1;
  }

  __device__ uint32_t tile() const { return cursor_.next(); }
  __device__ int32_t position() const { return static_cast<int32_t>(cursor_.next() * kPositions); }
  __device__ SharedArray<uint4> k() const { return k_; }
  __device__ SharedArray<uint4> v() const { return v_; }

 private:
  static constexpr uint32_t kBlockPairs = 17;  // a block in 16-bit words
  // Neighbouring threads that copy neighbouring pieces of a row.
  static constexpr uint32_t kRowLanes = kThreads / kPositions > 8 ? kThreads / kPositions : 8;
  static constexpr uint32_t kRowStep = kThreads / kRowLanes;
  static_assert(kPositions % kRowStep == 0 && kThreads % kPositions == 0);

  // A quantised row, in units of 16 bytes.
  static constexpr uint32_t RawChunks(const PageRows& rows) { return (rows.row_bytes + 15) / 16; }

  __device__ static SharedArray<uint4> Stage(SharedArray<uint4> all, const PageRows& rows,
                                             uint32_t stage) {
    return all + stage * kPositions * RawChunks(rows);
  }

  // Starts loading a tile, if the run has it. A group in any case.
  __device__ void Load(uint32_t tile, uint32_t stage) const {
    if (tile < cursor_.end()) {
      const SharedArray<uint32_t> rows = cursor_.Rows(tile);
      Copy(Stage(raw_k_, a_.k, stage), rows, a_.k);
      if (!a_.p.pages.latent) Copy(Stage(raw_v_, a_.v, stage), rows, a_.v);
    }
    EndCopyGroup();
  }

  __device__ static void Copy(SharedArray<uint4> to, SharedArray<uint32_t> rows,
                              const PageRows& from) {
    switch (from.copy_bytes) {
      case 16:
        return CopyPieces<uint4>(to, rows, from, BeginCopy16);
      case 8:
        return CopyPieces<uint2>(to, rows, from, BeginCopy8);
      case 4:
        return CopyPieces<uint32_t>(to, rows, from, BeginCopy4);
      default:
        return CopyPieces<uint16_t>(to, rows, from,
                                    [](SharedArray<uint16_t> words, uint32_t at, const void* word) {
                                      words[at] = *static_cast<const uint16_t*>(word);
                                    });
    }
  }

  // kRowLanes threads copy a row. What is left of all rows behind whole runs of kRowLanes pieces
  // is copied a row per thread. Rows that no query row attends to are left as they are.
  template <typename Piece, typename Begin>
  __device__ static void CopyPieces(SharedArray<uint4> to, SharedArray<uint32_t> rows,
                                    const PageRows& from, Begin begin) {
    const SharedArray<Piece> pieces = to.template As<Piece>();
    const uint32_t stride = RawChunks(from) * sizeof(uint4) / sizeof(Piece);
    const uint32_t count = from.row_bytes / sizeof(Piece), runs = count / kRowLanes * kRowLanes;
    const auto row_data = [&](uint32_t source) {
      return from.data + static_cast<size_t>(source) * from.row_bytes;
    };
#pragma unroll
    for (uint32_t i = 0; i < kPositions / kRowStep; ++i) {
      const uint32_t row = threadIdx.x / kRowLanes + i * kRowStep, source = rows[row];
      if (source == TileCursor<kPositions>::kNoRow) continue;
      const std::byte* const data = row_data(source);
#pragma unroll 2
      for (uint32_t piece = threadIdx.x % kRowLanes; piece < runs; piece += kRowLanes)
        begin(pieces, row * stride + piece, data + size_t{piece} * sizeof(Piece));
    }
    const uint32_t row = threadIdx.x % kPositions;
    for (uint32_t piece = runs + threadIdx.x / kPositions; piece < count;
         piece += kThreads / kPositions) {
      const uint32_t source = rows[row];
      if (source == TileCursor<kPositions>::kNoRow) break;
      begin(pieces, row * stride + piece, row_data(source) + size_t{piece} * sizeof(Piece));
    }
  }

  // A thread has blocks of one row, and a warp 32 rows: their chunks lie in different banks.
  __device__ static void Convert(SharedArray<uint4> to, SharedArray<uint4> raw,
                                 SharedArray<uint32_t> rows, const PageRows& from) {
    const uint32_t row = threadIdx.x % kPositions;
    const bool real = rows[row] != TileCursor<kPositions>::kNoRow;
    for (uint32_t block = threadIdx.x / kPositions; block < from.chunks / 4;
         block += kThreads / kPositions) {
      uint32_t bytes[8] = {};
      const uint32_t begin = row * RawChunks(from) * 8 + block * kBlockPairs;
      const uint16_t scale = real ? ReadBlock(raw, begin, bytes) : uint16_t{0};
#pragma unroll
      for (uint32_t i = 0; i < 4; ++i) {
        const uint2 low = ScaledHalves(bytes[2 * i], scale);
        const uint2 high = ScaledHalves(bytes[2 * i + 1], scale);
        to[row * from.stride() + block * 4 + i] = make_uint4(low.x, low.y, high.x, high.y);
      }
    }
  }

  // The values of the block that begins at a 16-bit word, by whole 32-bit words; every other block
  // begins inside one. Returns the scale.
  __device__ static uint16_t ReadBlock(SharedArray<uint4> raw, uint32_t begin,
                                       uint32_t (&bytes)[8]) {
    const SharedArray<uint16_t> halves = raw.template As<uint16_t>();
    const SharedArray<uint32_t> words = raw.template As<uint32_t>();
    const uint32_t first = (begin + 1) / 2;
#pragma unroll
    for (uint32_t i = 0; i < 8; ++i) bytes[i] = words[first + i];
    if (begin % 2 != 0) return halves[begin];
    const auto scale = static_cast<uint16_t>(bytes[0]);
    const uint32_t last = static_cast<uint16_t>(halves[begin + kBlockPairs - 1]);
#pragma unroll
    for (uint32_t i = 0; i < 7; ++i) bytes[i] = __funnelshift_r(bytes[i], bytes[i + 1], 16);
    bytes[7] = __funnelshift_r(bytes[7], last, 16);
    return scale;
  }

  const AttentionArgs& a_;
  const SharedArray<uint4> k_;
  const SharedArray<uint4> v_;
  const SharedArray<uint4> raw_k_;
  const SharedArray<uint4> raw_v_;
  uint32_t stage_ = 0;  // of the current tile
  TileCursor<kPositions> cursor_;
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_ATTENTION_Q8_TILES_H_
