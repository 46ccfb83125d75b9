// K and V rows of a paged sequence, copied to shared memory by cp.async, one tile of positions at a
// time. With several stages (AttentionArgs::stages), the next tiles load while one is used.
//
//   KvTiles<Page, positions, threads, most chunks> tiles(args, current, arena);
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

// kMostChunks: rows have no more chunks; 0: any number.
template <typename Page, uint32_t kPositions, uint32_t kThreads, uint32_t kMostChunks>
class KvTiles {
  static_assert(kPositions <= kThreads);

 public:
  static size_t SharedBytesOf(const AttentionArgs& a) {
    const size_t row = a.k.stride() + (a.p.pages.latent ? 0 : a.v.stride());
    return a.stages * kPositions * row * sizeof(uint4) + TileCursor<kPositions>::kSharedBytes;
  }

  __device__ KvTiles(const AttentionArgs& a, SharedArray<Assignment> current, SharedArena& arena)
      : a_(a),
        k_(arena.Take<uint4>(a.stages * kPositions * a.k.stride())),
        v_(a.p.pages.latent ? k_ : arena.Take<uint4>(a.stages * kPositions * a.v.stride())),
        cursor_(a, current, arena) {}

  // Starts loading the first tiles of the current run. Tiles of an earlier run are no longer in
  // use.
  __device__ void StartLoads() {
    const uint32_t ahead = a_.stages - 1;
    cursor_.Begin(ahead);
    __syncthreads();
    for (uint32_t i = 0; i < ahead; ++i) Load(cursor_.next() + i, i);
    stage_ = 0;
  }

  // Waits for the next tile and starts a load into the stage of the one before it. False after the
  // last tile.
  __device__ bool WaitForTile() {
    const uint32_t tile = cursor_.next(), ahead = a_.stages - 1;
    if (tile >= cursor_.end()) return false;
    WaitForFirstOf(ahead);
    cursor_.Keep(tile + ahead);
    __syncthreads();  // the tile before this one is no longer in use
    Load(tile + ahead, stage_ == 0 ? ahead : stage_ - 1);
    cursor_.Fetch(tile + ahead + 1);
    if (ahead == 0) {
      WaitForCopies<0>();
      __syncthreads();
    }
    return true;
  }

  // This thread no longer needs the current tile.
  __device__ void ReleaseTile() {
    cursor_.Advance();
    stage_ = stage_ + 1 == a_.stages ? 0 : stage_ + 1;
  }

  // Number, first position and rows of the current tile.
  __device__ uint32_t tile() const { return cursor_.next(); }
  __device__ int32_t position() const { return static_cast<int32_t>(cursor_.next() * kPositions); }
  __device__ SharedArray<uint4> k() const { return Stage(k_, a_.k, stage_); }
  __device__ SharedArray<uint4> v() const { return Stage(v_, a_.v, stage_); }

 private:
  // Neighbouring threads that copy neighbouring chunks of a row: 128 bytes or more at once.
  static constexpr uint32_t kRowLanes = kThreads / kPositions > 8 ? kThreads / kPositions : 8;
  static constexpr uint32_t kRowStep = kThreads / kRowLanes;
  static_assert(kPositions % kRowStep == 0);

  __device__ static SharedArray<uint4> Stage(SharedArray<uint4> all, const PageRows& rows,
                                             uint32_t stage) {
    return all + stage * kPositions * rows.stride();
  }

  // Starts loading a tile, if the run has it. A group in any case.
  __device__ void Load(uint32_t tile, uint32_t stage) const {
    if (tile < cursor_.end()) {
      const SharedArray<uint32_t> rows = cursor_.Rows(tile);
      LoadRows(Stage(k_, a_.k, stage), rows, a_.k);
      if (!a_.p.pages.latent) LoadRows(Stage(v_, a_.v, stage), rows, a_.v);
    }
    EndCopyGroup();
  }

  __device__ static void LoadRows(SharedArray<uint4> to, SharedArray<uint32_t> rows,
                                  const PageRows& from) {
    if (from.copy_bytes == 16) {
      CopyRows(to, rows, from);
    } else {
      ConvertRows(to, rows, from);
    }
  }

  // A thread has the same chunks of every kRowStep-th row. What does not change is in registers:
  // behind each copy the compiler would read parameters again.
  __device__ static void CopyRows(SharedArray<uint4> to, SharedArray<uint32_t> rows,
                                  const PageRows& from) {
    const uint32_t lane = threadIdx.x % kRowLanes, first = threadIdx.x / kRowLanes;
    const uint32_t row_bytes = from.row_bytes, chunks = from.chunks, stride = from.stride();
    const uint32_t real_chunks = (from.dim + Page::kChunkValues - 1) / Page::kChunkValues;
    const std::byte* const begin = from.data + size_t{lane} * 16;
#pragma unroll
    for (uint32_t i = 0; i < kPositions / kRowStep; ++i) {
      const uint32_t row = first + i * kRowStep, source = rows[row], at = row * stride + lane;
      const bool real = source != TileCursor<kPositions>::kNoRow;
      const std::byte* const data = begin + static_cast<size_t>(real ? source : 0) * row_bytes;
      const auto copy = [&](uint32_t offset) {
        if (lane + offset >= chunks) return;
        const bool some = real && lane + offset < real_chunks;
        BeginCopy16OrZeros(to, at + offset, data + size_t{offset} * 16, some);
      };
      if constexpr (kMostChunks > 0) {
#pragma unroll
        for (uint32_t j = 0; j < kMostChunks / kRowLanes; ++j) copy(j * kRowLanes);
      } else {
        for (uint32_t offset = 0; offset < chunks; offset += kRowLanes) copy(offset);
      }
    }
  }

  // Rows that aren't aligned: through registers.
  __device__ static void ConvertRows(SharedArray<uint4> to, SharedArray<uint32_t> rows,
                                     const PageRows& from) {
    ForEachPiece<kPositions, kThreads>(from.chunks, [&](uint32_t row, uint32_t chunk) {
      const uint32_t source = rows[row], at = row * from.stride() + chunk;
      const std::byte* const data = from.data + static_cast<size_t>(source) * from.row_bytes;
      const bool some =
          source != TileCursor<kPositions>::kNoRow && chunk * Page::kChunkValues < from.dim;
      to[at] = some ? Page::Chunk(data, chunk, from.dim) : make_uint4(0, 0, 0, 0);
    });
  }

  const AttentionArgs& a_;
  const SharedArray<uint4> k_;
  const SharedArray<uint4> v_;
  uint32_t stage_ = 0;  // of the current tile
  TileCursor<kPositions> cursor_;
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_ATTENTION_KV_TILES_H_
