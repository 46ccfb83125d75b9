// As KvTiles, for Q8_0 pages (blocks of an F16 scale and 32 signed bytes): rows are copied as they
// are and dequantised to F16 in shared memory.
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
    size_t row = a.k.stride() + 2 * RawChunks(a.k);
    if (!a.p.pages.latent) row += a.v.stride() + 2 * RawChunks(a.v);
    return kPositions * row * sizeof(uint4) + TileCursor<kPositions>::kSharedBytes;
  }

  __device__ Q8Tiles(const AttentionArgs& a, SharedArray<Assignment> current, SharedArena& arena)
      : a_(a),
        k_(arena.Take<uint4>(kPositions * a.k.stride())),
        v_(a.p.pages.latent ? k_ : arena.Take<uint4>(kPositions * a.v.stride())),
        raw_k_(arena.Take<uint4>(2 * kPositions * RawChunks(a.k))),
        raw_v_(a.p.pages.latent ? raw_k_ : arena.Take<uint4>(2 * kPositions * RawChunks(a.v))),
        cursor_(a, current, arena) {}

  __device__ void StartLoads() {
    cursor_.Begin(1);
    __syncthreads();
    if (cursor_.next() < cursor_.end()) Load(cursor_.next());
  }

  __device__ bool WaitForTile() {
    const uint32_t tile = cursor_.next();
    if (tile >= cursor_.end()) return false;
    WaitForCopies<0>();
    cursor_.Keep(tile + 1);
    __syncthreads();
    if (tile + 1 < cursor_.end()) Load(tile + 1);
    cursor_.Fetch(tile + 2);
    Convert(k_, Stage(raw_k_, a_.k, tile), a_.k);
    if (!a_.p.pages.latent) Convert(v_, Stage(raw_v_, a_.v, tile), a_.v);
    __syncthreads();
    return true;
  }

  __device__ void ReleaseTile() { cursor_.Advance(); }

  __device__ uint32_t tile() const { return cursor_.next(); }
  __device__ int32_t position() const { return static_cast<int32_t>(cursor_.next() * kPositions); }
  __device__ SharedArray<uint4> k() const { return k_; }
  __device__ SharedArray<uint4> v() const { return v_; }

 private:
  static constexpr uint32_t kBlockPairs = 17;  // a block in 16-bit words

  // A quantised row, in units of 16 bytes.
  static constexpr uint32_t RawChunks(const PageRows& rows) { return (rows.row_bytes + 15) / 16; }

  __device__ static SharedArray<uint4> Stage(SharedArray<uint4> all, const PageRows& rows,
                                             uint32_t tile) {
    return all + tile % 2 * kPositions * RawChunks(rows);
  }

  __device__ void Load(uint32_t tile) const {
    Copy(Stage(raw_k_, a_.k, tile), cursor_.Rows(tile), a_.k);
    if (!a_.p.pages.latent) Copy(Stage(raw_v_, a_.v, tile), cursor_.Rows(tile), a_.v);
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

  template <typename Piece, typename Begin>
  __device__ static void CopyPieces(SharedArray<uint4> to, SharedArray<uint32_t> rows,
                                    const PageRows& from, Begin begin) {
    const SharedArray<Piece> pieces = to.template As<Piece>();
    const uint32_t stride = RawChunks(from) * sizeof(uint4) / sizeof(Piece);
    const uint32_t count = from.row_bytes / sizeof(Piece);
    ForEachPiece<kPositions, kThreads>(count, [&](uint32_t row, uint32_t piece) {
      const uint32_t source = rows[row];
      if (source == TileCursor<kPositions>::kNoRow) {
        pieces[row * stride + piece] = Piece{};
        return;
      }
      const std::byte* const data = from.data + static_cast<size_t>(source) * from.row_bytes;
      begin(pieces, row * stride + piece, data + size_t{piece} * sizeof(Piece));
    });
  }

  __device__ static void Convert(SharedArray<uint4> to, SharedArray<uint4> raw,
                                 const PageRows& rows) {
    const SharedArray<uint16_t> words = raw.template As<uint16_t>();
    const uint32_t stride = RawChunks(rows) * 8;
    ForEachPiece<kPositions, kThreads>(rows.chunks, [&](uint32_t row, uint32_t chunk) {
      const uint32_t block = row * stride + chunk / 4 * kBlockPairs;
      const uint32_t at = block + 1 + chunk % 4 * 4;
      const uint16_t scale = words[block];
      const uint2 low = ScaledHalves(Pack(words[at], words[at + 1]), scale);
      const uint2 high = ScaledHalves(Pack(words[at + 2], words[at + 3]), scale);
      to[row * rows.stride() + chunk] = make_uint4(low.x, low.y, high.x, high.y);
    });
  }

  const AttentionArgs& a_;
  const SharedArray<uint4> k_;
  const SharedArray<uint4> v_;
  const SharedArray<uint4> raw_k_;
  const SharedArray<uint4> raw_v_;
  TileCursor<kPositions> cursor_;
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_ATTENTION_Q8_TILES_H_
