// K and V rows of a paged sequence on their way to shared memory, tile of positions by tile of
// positions, the next one under way while the present one is used.
//
//   KvTiles<Page, positions, threads, stages> tiles(args, tile, kv_head, split, arena);
//   for (tiles.Start(); tiles.Arrive(); tiles.Leave()) { ... tiles.k(), tiles.v() ... }
//
// A Page says how 16 bytes of a row in shared memory come out of the row in the pages, for rows
// that can't be copied as they are. Rows that no query row sees are zeros; their block table
// entries are not read. All threads of the block call everything together.
#ifndef TANDEM_KERNELS_CUDA_OPS_ATTENTION_TILES_H_
#define TANDEM_KERNELS_CUDA_OPS_ATTENTION_TILES_H_

#include "kernels/cuda/device/async_copy.h"
#include "kernels/cuda/device/numbers.h"
#include "kernels/cuda/device/shared_array.h"
#include "kernels/cuda/ops/attention_work.h"

namespace tandem::kernels::cuda {

// Shared memory that KvTiles takes.
constexpr size_t KvTilesBytes(const AttentionArgs& a, uint32_t positions, uint32_t stages) {
  const size_t tile = a.k.stride() + (a.p.pages.latent ? 0 : a.v.stride());
  return stages * positions * tile * 16 + SharedBytes<uint32_t>(2 * positions);
}

// Values [8 chunk, 8 chunk + 8) of a row of `dim` 16-bit values, zeros behind it.
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
  __device__ KvTiles(const AttentionArgs& a, const RowTile& tile, uint32_t kv_head,
                     const SplitTiles& split, SharedArena& arena)
      : a_(a),
        tile_(tile),
        kv_head_(kv_head),
        next_(split.begin),
        end_(split.end),
        k_(arena.Take<uint4>(kStages * kPositions * a.k.stride())),
        v_(a.p.pages.latent ? k_ : arena.Take<uint4>(kStages * kPositions * a.v.stride())),
        rows_(arena.Take<uint32_t>(2 * kPositions)) {}

  // Begins to load the first tile.
  __device__ void Start() {
    FindRows(next_);
    FindRows(next_ + 1);
    __syncthreads();
    if (kStages == 2 && next_ < end_) Load(next_);
  }

  // The next tile is there, and the one after it on its way; false: that was the last.
  __device__ bool Arrive() {
    if (next_ >= end_) return false;
    if (kStages == 1) Load(next_);
    WaitForCopies<0>();
    __syncthreads();
    if (kStages == 2 && next_ + 1 < end_) Load(next_ + 1);
    FindRows(next_ + 2);
    return true;
  }

  // The present tile is no longer needed by this thread.
  __device__ void Leave() {
    if (kStages == 1) __syncthreads();
    ++next_;
  }

  // The first position of the present tile, and its rows.
  __device__ int32_t position() const { return static_cast<int32_t>(next_ * kPositions); }
  __device__ SharedArray<uint4> k() const { return Stage(k_, a_.k, next_); }
  __device__ SharedArray<uint4> v() const { return Stage(v_, a_.v, next_); }

 private:
  static constexpr uint32_t kNoRow = 0xffffffffu;

  __device__ static SharedArray<uint4> Stage(SharedArray<uint4> all, const PageRows& rows,
                                             uint32_t tile) {
    return kStages == 1 ? all : all + tile % 2 * kPositions * rows.stride();
  }

  // Looks up where the rows of a tile lie, one row per thread.
  __device__ void FindRows(uint32_t tile) const {
    if (threadIdx.x >= kPositions || tile >= end_) return;
    const auto position = static_cast<int32_t>(tile * kPositions + threadIdx.x);
    uint32_t row = kNoRow;
    if (position >= tile_.begin && position < tile_.end) {
      const uint32_t size = a_.p.pages.block_size;
      const uint32_t at = static_cast<uint32_t>(position);
      const auto block = static_cast<uint32_t>(tile_.table[at / size]);
      row = (block * a_.p.pages.kv_heads + kv_head_) * size + at % size;
    }
    rows_[tile % 2 * kPositions + threadIdx.x] = row;
  }

  __device__ void Load(uint32_t tile) const {
    const SharedArray<uint32_t> rows = rows_ + tile % 2 * kPositions;
    LoadRows(Stage(k_, a_.k, tile), rows, a_.k);
    if (!a_.p.pages.latent) LoadRows(Stage(v_, a_.v, tile), rows, a_.v);
    EndCopyGroup();
  }

  __device__ static void LoadRows(SharedArray<uint4> to, SharedArray<uint32_t> rows,
                                  const PageRows& from) {
    const uint32_t row_step = kThreads / from.chunks, chunk_step = kThreads % from.chunks;
    uint32_t row = threadIdx.x / from.chunks, chunk = threadIdx.x % from.chunks;
    while (row < kPositions) {
      const uint32_t source = rows[row], at = row * from.stride() + chunk;
      const std::byte* const data = from.data + static_cast<size_t>(source) * from.row_bytes;
      if (source == kNoRow || chunk * Page::kChunkValues >= from.dim) {
        to[at] = make_uint4(0, 0, 0, 0);
      } else if (from.async) {
        BeginCopy16(to, at, data + size_t{chunk} * 16);
      } else {
        to[at] = Page::Chunk(data, chunk, from.dim);
      }
      row += row_step;
      chunk += chunk_step;
      if (chunk >= from.chunks) {
        chunk -= from.chunks;
        ++row;
      }
    }
  }

  const AttentionArgs& a_;
  const RowTile& tile_;
  const uint32_t kv_head_;
  uint32_t next_;
  const uint32_t end_;
  const SharedArray<uint4> k_;
  const SharedArray<uint4> v_;
  const SharedArray<uint32_t> rows_;
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_OPS_ATTENTION_TILES_H_
