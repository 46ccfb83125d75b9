// K and V of a tile as floats: K transposed, V unpacked or read where it lies. Included by files
// that are compiled once per instruction set.
#ifndef TANDEM_KERNELS_CPU_ATTENTION_UNPACK_H_
#define TANDEM_KERNELS_CPU_ATTENTION_UNPACK_H_

#include "kernels/cpu/attention/ahead.h"
#include "kernels/cpu/page_rows.h"
#include "kernels/cpu/vec.h"

namespace tandem::kernels::cpu::TANDEM_CPU_ISA {

// Values [at, at + kLanes) of a row of `dim`, zeros beyond its end.
template <typename Rows>
inline Vec LoadRow(const void* row, uint32_t at, uint32_t dim) {
  const int left = static_cast<int>(dim - at);
  return left >= kLanes ? Rows::Load(row, at) : Rows::LoadPartial(row, at, left);
}

// K of a tile as (dim, 64): out[d * 64 + i] = rows[i][d], for d from `d` on.
template <typename Rows>
inline void UnpackTransposedFrom(const void* const rows[kTilePositions], uint32_t d, uint32_t dim,
                                 float* out, ReadAhead& ahead) {
  for (; d < dim; d += kLanes) {
    const bool whole = dim - d >= kLanes;
    for (int32_t i = 0; i < kTilePositions; i += kLanes) {
      Vec block[kLanes];
      if (whole) {
        for (int j = 0; j < kLanes; ++j) block[j] = Rows::Load(rows[i + j], d);
      } else {
        for (int j = 0; j < kLanes; ++j) block[j] = LoadRow<Rows>(rows[i + j], d, dim);
      }
      Transpose(block);
      for (int j = 0; j < kLanes; ++j)
        Store(out + (d + static_cast<uint32_t>(j)) * kTilePositions + i, block[j]);
    }
    ahead.Fetch();
  }
}
template <typename Rows>
struct Transposer {
  static void Run(const void* const rows[kTilePositions], uint32_t dim, float* out,
                  ReadAhead& ahead) {
    UnpackTransposedFrom<Rows>(rows, 0, dim, out, ahead);
  }
};

// Transposes pairs of values, then parts them: half the shuffles.
template <>
struct Transposer<Bf16Rows> {
  static void Run(const void* const rows[kTilePositions], uint32_t dim, float* out,
                  ReadAhead& ahead) {
    constexpr uint32_t kStep = 2 * kLanes;
    uint32_t d = 0;
    for (; d + kStep <= dim; d += kStep) {
      for (int32_t i = 0; i < kTilePositions; i += kLanes) {
        Vec block[kLanes];
        for (int j = 0; j < kLanes; ++j) block[j] = F32Rows::Load(rows[i + j], d / 2);
        Transpose(block);
        float* line = out + d * kTilePositions + i;
        for (int j = 0; j < kLanes; ++j, line += 2 * kTilePositions) {
          Store(line, LowBf16(block[j]));
          Store(line + kTilePositions, HighBf16(block[j]));
        }
      }
      ahead.Fetch();
    }
    UnpackTransposedFrom<Bf16Rows>(rows, d, dim, out, ahead);
  }
};

// Scales of block `block` of the rows of a tile.
inline void LoadScales(const void* const rows[kTilePositions], uint32_t block,
                       float scales[kTilePositions]) {
  uint16_t halves[kTilePositions];
  for (int32_t i = 0; i < kTilePositions; ++i)
    halves[i] = static_cast<const tensor::BlockQ8_0*>(rows[i])[block].d;
  for (int32_t i = 0; i < kTilePositions; i += kLanes) Store(scales + i, LoadHalf(halves + i));
}

// Transposes fours of int8, then parts and scales them.
template <>
struct Transposer<Q8_0Rows> {
  static void Run(const void* const rows[kTilePositions], uint32_t dim, float* out,
                  ReadAhead& ahead) {
    using Block = tensor::BlockQ8_0;
    constexpr uint32_t kBlocks = kLanes * 4 / Block::kValues;  // whose values fill a vector
    constexpr uint32_t kStep = kBlocks * Block::kValues;
    uint32_t d = 0;
    for (; d + kStep <= dim; d += kStep) {
      alignas(64) float scales[kBlocks][kTilePositions];
      const uint32_t first = d / Block::kValues;
      for (uint32_t b = 0; b < kBlocks; ++b) LoadScales(rows, first + b, scales[b]);
      for (int32_t i = 0; i < kTilePositions; i += kLanes) {
        Vec block[kLanes];
        for (int j = 0; j < kLanes; ++j)
          block[j] = LoadBlocks(static_cast<const Block*>(rows[i + j]) + first);
        Transpose(block);
        float* line = out + d * kTilePositions + i;
        for (int j = 0; j < kLanes; ++j, line += 4 * kTilePositions) {
          const Vec scale = Load(scales[j * 4 / Block::kValues] + i);
          Store(line, Int8At<0>(block[j]) * scale);
          Store(line + kTilePositions, Int8At<1>(block[j]) * scale);
          Store(line + 2 * kTilePositions, Int8At<2>(block[j]) * scale);
          Store(line + 3 * kTilePositions, Int8At<3>(block[j]) * scale);
        }
        ahead.Fetch();
      }
    }
    UnpackTransposedFrom<Q8_0Rows>(rows, d, dim, out, ahead);
  }

 private:
  static Vec LoadBlocks(const tensor::BlockQ8_0* blocks) {
    return LoadBytes(blocks[0].qs, blocks[kLanes / 8 - 1].qs);
  }
};

template <typename Rows>
inline void UnpackTransposed(const void* const rows[kTilePositions], uint32_t dim, float* out,
                             ReadAhead& ahead) {
  Transposer<Rows>::Run(rows, dim, out, ahead);
}

// Rows of a tile as (64, padded dim).
template <typename Rows>
inline void Unpack(const void* const rows[kTilePositions], uint32_t dim, float* out,
                   ReadAhead& ahead) {
  const uint32_t padded = Padded(dim);
  for (int32_t i = 0; i < kTilePositions; ++i) {
    float* const row = out + static_cast<uint32_t>(i) * padded;
    uint32_t d = 0;
    for (; d + kLanes <= dim; d += kLanes) Store(row + d, Rows::Load(rows[i], d));
    for (; d < dim; d += kLanes) Store(row + d, LoadRow<Rows>(rows[i], d, dim));
    for (; d < padded; d += kLanes) Store(row + d, Zero());
    if (i % 8 == 0) ahead.Fetch();
  }
}

// Columns of V as they lie in the pages: kColumns values from column `at` on of the tile's rows.
template <typename Rows>
struct PageColumns {
  static constexpr uint32_t kColumns = 32;

  PageColumns(const void* const rows[kTilePositions], uint32_t at) : rows_(rows), at_(at) {}
  Vec operator()(int32_t i, uint32_t column) const { return Rows::Load(rows_[i], at_ + column); }

 private:
  const void* const* rows_;
  uint32_t at_;
};
template <>
struct PageColumns<Q8_0Rows> {
  static constexpr uint32_t kColumns = tensor::BlockQ8_0::kValues;

  PageColumns(const void* const rows[kTilePositions], uint32_t at)
      : rows_(rows), block_(at / kColumns) {
    LoadScales(rows, block_, scales_);
  }
  Vec operator()(int32_t i, uint32_t column) const {
    const auto& block = static_cast<const tensor::BlockQ8_0*>(rows_[i])[block_];
    return LoadInt8(block.qs + column) * Set1(scales_[i]);
  }

 private:
  const void* const* rows_;
  uint32_t block_;
  alignas(64) float scales_[kTilePositions];
};

// Columns of V unpacked to floats.
struct FloatColumns {
  const float* v;
  uint32_t stride;

  Vec operator()(int32_t i, uint32_t column) const {
    return Load(v + static_cast<uint32_t>(i) * stride + column);
  }
};

}  // namespace tandem::kernels::cpu::TANDEM_CPU_ISA

#endif  // TANDEM_KERNELS_CPU_ATTENTION_UNPACK_H_
