// One tile of attention: 64 positions of K and V unpacked to floats, and the two products with a
// block of query rows.
//
// A score is one chain of fused multiply-adds over the head's dimensions, an output value one chain
// over positions: no sum depends on how rows are grouped. Included by files that are compiled once
// per instruction set.
#ifndef TANDEM_KERNELS_CPU_ATTENTION_TILE_H_
#define TANDEM_KERNELS_CPU_ATTENTION_TILE_H_

#include "kernels/cpu/attention_plan.h"
#include "kernels/cpu/page_rows.h"
#include "kernels/cpu/vec.h"

namespace tandem::kernels::cpu::TANDEM_CPU_ISA {

// Rows and vectors per row of the register tile.
inline constexpr int kBlockRows = 6;
inline constexpr int kBlockVecs = kLanes == 16 ? 4 : 2;

// The addresses of the rows of positions [begin, end) of a tile that starts at `tile`; null for the
// others.
inline void FindRows(const AttentionParams& p, const int32_t* table, uint32_t kv_head, int32_t tile,
                     PositionRange wanted, const void* pages, uint32_t dim,
                     const void* rows[kTilePositions]) {
  const KvPages& kv = p.pages;
  const size_t row_bytes = tensor::RowBytes(kv.type, dim);
  const auto block_size = static_cast<int32_t>(kv.block_size);
  for (int32_t i = 0; i < kTilePositions; ++i) rows[i] = nullptr;
  for (int32_t pos = wanted.begin; pos < wanted.end;) {
    const int32_t offset = pos % block_size;
    const auto block = static_cast<size_t>(table[pos / block_size]);
    const size_t first =
        (block * kv.kv_heads + kv_head) * kv.block_size + static_cast<size_t>(offset);
    const auto* row = static_cast<const unsigned char*>(pages) + first * row_bytes;
    int32_t end = pos + block_size - offset;
    if (end > wanted.end) end = wanted.end;
    for (; pos < end; ++pos, row += row_bytes) rows[pos - tile] = row;
  }
}

// Values [at, at + kLanes) of a row of `dim`, zeros beyond its end.
template <typename Rows>
inline Vec LoadRow(const void* row, uint32_t at, uint32_t dim) {
  const int left = static_cast<int>(dim - at);
  return left >= kLanes ? Rows::Load(row, at) : Rows::LoadPartial(row, at, left);
}

// K of a tile as (dim, 64): out[d * 64 + i] = rows[i][d]; zeros for null rows.
template <typename Rows>
inline void UnpackTransposed(const void* const rows[kTilePositions], uint32_t dim, float* out) {
  for (int32_t i = 0; i < kTilePositions; i += kLanes) {
    for (uint32_t d = 0; d < dim; d += kLanes) {
      Vec block[kLanes];
      for (int j = 0; j < kLanes; ++j)
        block[j] = rows[i + j] == nullptr ? Zero() : LoadRow<Rows>(rows[i + j], d, dim);
      Transpose(block);
      for (int j = 0; j < kLanes; ++j)
        Store(out + (d + static_cast<uint32_t>(j)) * kTilePositions + i, block[j]);
    }
  }
}

// Rows of a tile as (64, padded dim); null rows are left unset and never read.
template <typename Rows>
inline void Unpack(const void* const rows[kTilePositions], uint32_t dim, float* out) {
  const uint32_t padded = Padded(dim);
  for (int32_t i = 0; i < kTilePositions; ++i) {
    if (rows[i] == nullptr) continue;
    float* const row = out + static_cast<uint32_t>(i) * padded;
    uint32_t d = 0;
    for (; d < dim; d += kLanes) Store(row + d, LoadRow<Rows>(rows[i], d, dim));
    for (; d < padded; d += kLanes) Store(row + d, Zero());
  }
}

// scores[r * 64 + i] = q[r] . k[:, i] for R rows of q that lie `stride` apart.
template <int R>
inline void ScoreRows(const float* q, uint32_t stride, uint32_t dim, const float* k,
                      float* scores) {
  for (int32_t i = 0; i < kTilePositions; i += kBlockVecs * kLanes) {
    Vec sum[R][kBlockVecs];
    for (int r = 0; r < R; ++r) {
      for (int c = 0; c < kBlockVecs; ++c) sum[r][c] = Zero();
    }
    for (uint32_t d = 0; d < dim; ++d) {
      const float* const line = k + d * kTilePositions + i;
      Vec column[kBlockVecs];
      for (int c = 0; c < kBlockVecs; ++c) column[c] = Load(line + c * kLanes);
      for (int r = 0; r < R; ++r) {
        const Vec value = Set1(q[static_cast<uint32_t>(r) * stride + d]);
        for (int c = 0; c < kBlockVecs; ++c) sum[r][c] = Fma(value, column[c], sum[r][c]);
      }
    }
    for (int r = 0; r < R; ++r) {
      for (int c = 0; c < kBlockVecs; ++c)
        Store(scores + r * kTilePositions + i + c * kLanes, sum[r][c]);
    }
  }
}

// sums[r][c..] += weights[r * 64 + i] * v[i][c..] for i in [begin, end), in order; `Vecs` vectors
// from column c on.
template <int R, int Vecs>
inline void MixColumns(const float* weights, int32_t begin, int32_t end, const float* v,
                       uint32_t v_stride, float* sums, uint32_t sum_stride) {
  Vec sum[R][Vecs];
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < Vecs; ++c)
      sum[r][c] = Load(sums + static_cast<uint32_t>(r) * sum_stride + c * kLanes);
  }
  for (int32_t i = begin; i < end; ++i) {
    Vec value[Vecs];
    for (int c = 0; c < Vecs; ++c)
      value[c] = Load(v + static_cast<uint32_t>(i) * v_stride + c * kLanes);
    for (int r = 0; r < R; ++r) {
      const Vec weight = Set1(weights[r * kTilePositions + i]);
      for (int c = 0; c < Vecs; ++c) sum[r][c] = Fma(weight, value[c], sum[r][c]);
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < Vecs; ++c)
      Store(sums + static_cast<uint32_t>(r) * sum_stride + c * kLanes, sum[r][c]);
  }
}

// All columns of R rows; `columns` is the padded value dimension.
template <int R>
inline void MixRows(const float* weights, int32_t begin, int32_t end, const float* v,
                    uint32_t v_stride, uint32_t columns, float* sums, uint32_t sum_stride) {
  constexpr uint32_t kWide = kBlockVecs * kLanes;
  uint32_t c = 0;
  for (; c + kWide <= columns; c += kWide) {
    MixColumns<R, kBlockVecs>(weights, begin, end, v + c, v_stride, sums + c, sum_stride);
  }
  for (; c < columns; c += kLanes)
    MixColumns<R, 1>(weights, begin, end, v + c, v_stride, sums + c, sum_stride);
}

}  // namespace tandem::kernels::cpu::TANDEM_CPU_ISA

#endif  // TANDEM_KERNELS_CPU_ATTENTION_TILE_H_
