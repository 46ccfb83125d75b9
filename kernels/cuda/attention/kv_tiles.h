// K and V rows of a paged sequence, copied to shared memory by cp.async, one tile of positions at a
// time. With two stages, the next tile loads while the current one is used.
//
//   KvTiles<Page, positions, threads, stages> tiles(args, current, arena);
//   for (tiles.StartLoads(); tiles.WaitForTile(); tiles.ReleaseTile()) {
//     ... tiles.k(), tiles.v() ...
//   }
//
// Page defines how 16 bytes of a row in shared memory are read from the pages, for rows that can't
// be copied as they are. Rows that no query row attends to are zeros. All threads of the block make
// every call together.
#ifndef TANDEM_KERNELS_CUDA_ATTENTION_KV_TILES_H_
#define TANDEM_KERNELS_CUDA_ATTENTION_KV_TILES_H_

#include "kernels/cuda/attention/tile_cursor.h"
#include "kernels/cuda/device/async_copy.h"
#include "kernels/cuda/device/numbers.h"

namespace tandem::kernels::cuda {

// Values [8 chunk, 8 chunk + 8) of a row of `dim` 16-bit values, zero-padded.
__device__ inline uint4 Chunk16(const std::byte* row, uint32_t chunk, uint32_t dim) {
  const auto* const values = reinterpret_cast<const uint16_t*>(row);
  uint32_t words[4];
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t at = chunk * 8 + i * 2;
    words[i] = Pack(at < dim ? values[at] : 0, at + 1 < dim ? values[at + 1] : 0);
  }
  return make_uint4(words[0], words[1], words[2], words[3]);
}

template <typename Page, uint32_t kPositions, uint32_t kThreads, uint32_t kStages>
class KvTiles {
  static_assert(kStages == 1 || kStages == 2);
  static_assert(kPositions <= kThreads);

 public:
  static size_t SharedBytesOf(const AttentionArgs& a) {
    const size_t row = a.k.stride() + (a.p.pages.latent ? 0 : a.v.stride());
    return kStages * kPositions * row * sizeof(uint4) + TileCursor<kPositions>::kSharedBytes;
  }

  __device__ KvTiles(const AttentionArgs& a, SharedArray<Assignment> current, SharedArena& arena)
      : a_(a),
        k_(arena.Take<uint4>(kStages * kPositions * a.k.stride())),
        v_(a.p.pages.latent ? k_ : arena.Take<uint4>(kStages * kPositions * a.v.stride())),
        cursor_(a, current, arena) {}

  // Starts loading the first tile of the current run. Tiles of an earlier run are no longer in use.
  __device__ void StartLoads() {
    cursor_.Begin();
    cursor_.FindRows(cursor_.next());
    cursor_.FindRows(cursor_.next() + 1);
    __syncthreads();
    if (kStages == 2 && cursor_.next() < cursor_.end()) Load(cursor_.next());
  }

  // Waits for the next tile and starts loading the one after it. False after the last tile.
  __device__ bool WaitForTile() {
    const uint32_t tile = cursor_.next();
    if (tile >= cursor_.end()) return false;
    if (kStages == 1) Load(tile);
    WaitForCopies<0>();
    __syncthreads();
    if (kStages == 2 && tile + 1 < cursor_.end()) Load(tile + 1);
    cursor_.FindRows(tile + 2);
    return true;
  }

  // This thread no longer needs the current tile.
  __device__ void ReleaseTile() {
    if (kStages == 1) __syncthreads();
    cursor_.Advance();
  }

  // Number, first position and rows of the current tile.
  __device__ uint32_t tile() const { return cursor_.next(); }
  __device__ int32_t position() const { return static_cast<int32_t>(cursor_.next() * kPositions); }
  __device__ SharedArray<uint4> k() const { return Stage(k_, a_.k, cursor_.next()); }
  __device__ SharedArray<uint4> v() const { return Stage(v_, a_.v, cursor_.next()); }

 private:
  __device__ static SharedArray<uint4> Stage(SharedArray<uint4> all, const PageRows& rows,
                                             uint32_t tile) {
    return kStages == 1 ? all : all + tile % 2 * kPositions * rows.stride();
  }

  __device__ void Load(uint32_t tile) const {
    LoadRows(Stage(k_, a_.k, tile), cursor_.Rows(tile), a_.k);
    if (!a_.p.pages.latent) LoadRows(Stage(v_, a_.v, tile), cursor_.Rows(tile), a_.v);
    EndCopyGroup();
  }

  __device__ static void LoadRows(SharedArray<uint4> to, SharedArray<uint32_t> rows,
                                  const PageRows& from) {
    ForEachPiece<kPositions, kThreads>(from.chunks, [&](uint32_t row, uint32_t chunk) {
      const uint32_t source = rows[row], at = row * from.stride() + chunk;
      const std::byte* const data = from.data + static_cast<size_t>(source) * from.row_bytes;
      if (source == TileCursor<kPositions>::kNoRow || chunk * Page::kChunkValues >= from.dim) {
        to[at] = make_uint4(0, 0, 0, 0);
      } else if (from.copy_bytes == 16) {
        BeginCopy16(to, at, data + size_t{chunk} * 16);
      } else {
        to[at] = Page::Chunk(data, chunk, from.dim);
      }
    });
  }

  const AttentionArgs& a_;
  const SharedArray<uint4> k_;
  const SharedArray<uint4> v_;
  TileCursor<kPositions> cursor_;
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_ATTENTION_KV_TILES_H_
