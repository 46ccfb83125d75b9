// K that lies in columns (KvPages::k_columns, decision 42): where the words of a tile are, and
// their unpacking where products take floats. Included by files that are compiled once per
// instruction set.
#ifndef TANDEM_KERNELS_CPU_ATTENTION_COLUMNS_H_
#define TANDEM_KERNELS_CPU_ATTENTION_COLUMNS_H_

#include "kernels/cpu/attention/pages.h"
#include "kernels/cpu/attention/plan.h"
#include "kernels/cpu/page_rows.h"
#include "kernels/cpu/vec.h"

namespace tandem::kernels::cpu::TANDEM_CPU_ISA {

// K of a tile in columns: where words 0 of each group of positions are, and the bytes from a word
// to the same position's next; for Q8_0 likewise for scales, which are F16.
struct KeyColumns {
  const unsigned char* words[kGroups];
  size_t stride;
  const unsigned char* scales[kGroups];
  size_t scale_stride;
};

// REQUIRES: `k_columns`.
inline KeyColumns FindKeyColumns(const KvPages& kv, const TileGroups& groups, uint32_t kv_head,
                                 size_t row_bytes) {
  const size_t word_bytes = kv.type == tensor::Type::kF16 ? 2 : 4;
  KeyColumns keys;
  keys.stride = kv.block_size * word_bytes;
  keys.scale_stride = kv.block_size * sizeof(uint16_t);
  for (int g = 0; g < kGroups; ++g) {
    const auto* const block =
        static_cast<const unsigned char*>(kv.k) + groups.BlockRow(kv, kv_head, g) * row_bytes;
    const size_t offset = groups.in_block[g] * kGroupPositions;
    keys.words[g] = block + offset * word_bytes;
    keys.scales[g] = block + size_t{kv.head_dim} * kv.block_size + offset * sizeof(uint16_t);
  }
  return keys;
}

// Words of K of kLanes positions, `stride` bytes apart; Rows is the type of a word: F16Rows, or
// F32Rows whatever its bits mean.
template <typename Rows>
struct KeyColumn {
  static constexpr uint32_t kValues = 1;  // of a word, to products
  const unsigned char* at;
  size_t stride;

  Vec operator()(uint32_t word) const { return Rows::Load(at + word * stride, 0); }
  template <int>
  Vec Value(uint32_t word) const {
    return (*this)(word);
  }
};
// Pairs of BF16 as floats.
struct Bf16KeyColumn : KeyColumn<F32Rows> {
  static constexpr uint32_t kValues = 2;

  template <int kHalf>
  Vec Value(uint32_t word) const {
    return kHalf == 0 ? LowBf16((*this)(word)) : HighBf16((*this)(word));
  }
};

// K of a tile in columns of the pages, and in (words, 64): the column of positions from a multiple
// of kLanes on.
template <typename Rows>
struct KeysInPages {
  const KeyColumns& keys;

  KeyColumn<Rows> operator()(int32_t position) const {
    const auto in_group = static_cast<size_t>(position % kGroupPositions);
    return {keys.words[position / kGroupPositions] + in_group * Rows::kValueBytes, keys.stride};
  }
};
struct Bf16KeysInPages {
  const KeyColumns& keys;

  Bf16KeyColumn operator()(int32_t position) const {
    return {KeysInPages<F32Rows>{keys}(position)};
  }
};
struct KeysOfTile {
  const float* tile;

  KeyColumn<F32Rows> operator()(int32_t position) const {
    return {reinterpret_cast<const unsigned char*>(tile + position),
            kTilePositions * sizeof(float)};
  }
};

// Scales of Q8_0 block `block` of a vector of positions.
inline Vec KeyScales(const KeyColumns& keys, int32_t position, uint32_t block) {
  return LoadHalf(reinterpret_cast<const uint16_t*>(keys.scales[position / kGroupPositions] +
                                                    block * keys.scale_stride) +
                  position % kGroupPositions);
}

// K in columns as (dim, 64).
template <typename Rows>
struct ColumnUnpacker {
  static void Run(const KeyColumns& keys, uint32_t dim, float* out) {
    for (int32_t i = 0; i < kTilePositions; i += kLanes) {
      const KeyColumn<Rows> column = KeysInPages<Rows>{keys}(i);
      for (uint32_t d = 0; d < dim; ++d) Store(out + d * kTilePositions + i, column(d));
    }
  }
};
template <>
struct ColumnUnpacker<Bf16Rows> {
  static void Run(const KeyColumns& keys, uint32_t dim, float* out) {
    for (int32_t i = 0; i < kTilePositions; i += kLanes) {
      const KeyColumn<F32Rows> column = KeysInPages<F32Rows>{keys}(i);
      float* line = out + i;
      for (uint32_t w = 0; w < dim / 2; ++w, line += 2 * kTilePositions) {
        Store(line, LowBf16(column(w)));
        Store(line + kTilePositions, HighBf16(column(w)));
      }
    }
  }
};
template <>
struct ColumnUnpacker<Q8_0Rows> {
  static void Run(const KeyColumns& keys, uint32_t dim, float* out) {
    constexpr uint32_t kWords = Q8_0Rows::Block::kValues / 4;
    for (int32_t i = 0; i < kTilePositions; i += kLanes) {
      const KeyColumn<F32Rows> column = KeysInPages<F32Rows>{keys}(i);
      float* line = out + i;
      for (uint32_t w = 0; w < dim / 4; ++w, line += 4 * kTilePositions) {
        const Vec scale = KeyScales(keys, i, w / kWords);
        Store(line, Int8At<0>(column(w)) * scale);
        Store(line + kTilePositions, Int8At<1>(column(w)) * scale);
        Store(line + 2 * kTilePositions, Int8At<2>(column(w)) * scale);
        Store(line + 3 * kTilePositions, Int8At<3>(column(w)) * scale);
      }
    }
  }
};

}  // namespace tandem::kernels::cpu::TANDEM_CPU_ISA

#endif  // TANDEM_KERNELS_CPU_ATTENTION_COLUMNS_H_
