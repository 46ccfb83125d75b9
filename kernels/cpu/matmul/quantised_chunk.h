// Chunks of quantised weights: one block of each row, multiplied with quantised activations.
#ifndef TANDEM_KERNELS_CPU_MATMUL_QUANTISED_CHUNK_H_
#define TANDEM_KERNELS_CPU_MATMUL_QUANTISED_CHUNK_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "kernels/cpu/matmul/product.h"
#include "kernels/cpu/matmul/quant_block.h"
#include "kernels/cpu/matmul/tile.h"
#include "kernels/cpu/matmul/weight_source.h"

namespace tandem::kernels::cpu {

// Tile kTile of the blocks of kGroups groups of rows, `step` bytes apart, as products read it where
// it lies.
template <class S, class U, int kTile, int kGroups, class B>
class TileInPlace {
 public:
  using Traits = typename U::TileT::Traits;
  static constexpr bool kSplit = false;

  [[gnu::always_inline]] TileInPlace(const B& block, size_t step, const typename U::Head* heads)
      : block_(block), step_(step), heads_(heads) {
#pragma GCC unroll 2
    for (int g = 0; g < kGroups; ++g) heads[g].template Scales<kTile>(scale_[g]);
  }

  [[gnu::always_inline]] typename S::Int Word(int group, int j) const {
    return U::template Words<kTile>(block_.After(group * step_), heads_[group])(j);
  }
  [[gnu::always_inline]] typename S::Float Scale(int group, int i) const {
    return scale_[group][i];
  }

 private:
  const B& block_;
  size_t step_;
  const typename U::Head* heads_;
  typename S::Float scale_[kGroups][sizeof(U::TileT::scale) / sizeof(typename S::Float)];
};

// S: the instruction set (simd_*.h). U: a format (unpack_*.h), which defines, with S:
//   Block, TileT             a row's block, and what a tile of it unpacks to
//   Head(block)              what all tiles of a block need
//   Head::Scales<kTile>(out) a tile's scales, then its minimums
//   Words<kTile>(block, head)(j)  word j of a tile's bytes
//   kAlwaysInPlace           only if a word is nearly one of the block
//   kNeverInPlace            only if words are looked up in memory
//
// kOnce: of chunks that are unpacked for a single set of tokens, which is not worth splitting
// signs, or for Expand.
template <class S, class U, bool kOnce = false>
struct QuantisedChunk {
  using Once = QuantisedChunk<S, U, U::TileT::kSplit>;
  static constexpr Activations kActivations = Activations::kQuantBlocks;
  using Block = typename U::Block;
  using Unit = std::conditional_t<kOnce, typename U::TileT::Unsplit, typename U::TileT>;
  using X = QuantBlock;
  static constexpr uint32_t kCols = Block::kValues;
  static constexpr uint32_t kUnits = kCols / QuantBlock::kValues;
  static constexpr uint32_t kXCols = QuantBlock::kValues;
  static constexpr size_t kBytes = sizeof(Block);
  static constexpr uint32_t kFetches = kUnits;
  static constexpr InPlaceUse kInPlace = [] {
    if constexpr (requires { U::kAlwaysInPlace; }) return InPlaceUse::kAlways;
    if constexpr (requires { U::kNeverInPlace; }) return InPlaceUse::kNever;
    return InPlaceUse::kUnpacking;
  }();
  static constexpr int kTokens =
      Unit::Traits::kScales == 1 && !Unit::Traits::kMins ? S::kTokensOfOneScale : S::kTokens;
  static constexpr int kTokensOfMany = std::min(kTokens, S::kTokensOfMany);
  static constexpr int kTokensOfGroup =
      Unit::Traits::kSigned ? S::kTokensOfSignedGroup : S::kTokensOfGroup;
  // Of a set in place: two scales take registers, too, and so do the minimums of blocks of 256
  // (docs/performance.md has the figures).
  static constexpr int kTokensInPlace =
      Unit::Traits::kScales == 1 && !(Unit::Traits::kMins && kUnits > 1) ? S::kTokensInPlace
                                                                         : S::kTokensOfGroup;
  // With two scales, a third set takes longer than a copy.
  static constexpr uint32_t kMostInPlace =
      Unit::Traits::kScales == 1 ? S::kMostInPlace
                                 : std::min<uint32_t>(S::kMostInPlace, 2 * kTokensInPlace);

  template <class Source>
  [[gnu::always_inline]] static inline void Unpack(const Source& source, uint32_t col,
                                                   uint32_t /*count*/, Unit* out) {
    const auto block = source.template Block<Block>(col / kCols);
    if constexpr (kUnits > 1) {
      UnpackTiles(block, out);
    } else {
      UnpackTile<0>(block, typename U::Head(block), out);
    }
  }

  // The values of the columns unpacked, one column of rows each.
  [[gnu::always_inline]] static inline void Expand(const Unit* units, typename S::Float* out) {
    for (uint32_t u = 0; u < kUnits; ++u) ExpandTile<S>(units[u], out + u * QuantBlock::kValues);
  }

  struct Unpacked {
    const Unit* units;
    size_t step;
  };

  // A block of `source` and those of the panels `step` bytes after it.
  template <class Source>
  struct InPlace {
    [[gnu::always_inline]] InPlace(const Source& source, size_t step_bytes, size_t chunk)
        : block(source.template Block<Block>(chunk)), step(step_bytes) {}

    decltype(std::declval<Source>().template Block<Block>(0)) block;
    size_t step;
  };

  template <int kGroups, int kTokens, class Fetch>
  [[gnu::always_inline]] static inline void Multiply(const Unpacked& w, const X* x, size_t x_step,
                                                     uint32_t /*count*/, const Fetch& fetch,
                                                     typename S::Float (&acc)[kGroups][kTokens]) {
    for (uint32_t u = 0; u < kUnits; ++u) {
      fetch();
      MultiplyTile<S>(UnpackedTiles<S, Unit>{w.units + u, w.step}, x + u, x_step, acc);
    }
  }
  template <int kGroups, int kTokens, class Source, class Fetch>
  [[gnu::always_inline]] static inline void Multiply(const InPlace<Source>& w, const X* x,
                                                     size_t x_step, uint32_t /*count*/,
                                                     const Fetch& fetch,
                                                     typename S::Float (&acc)[kGroups][kTokens]) {
    using B = decltype(w.block);
    const auto heads = Heads<kGroups>(w);
    ForEachTile([&]<int kTile>() __attribute__((always_inline)) {
      fetch();
      const TileInPlace<S, U, kTile, kGroups, B> tile(w.block, w.step, heads.data());
      MultiplyTile<S>(tile, x + kTile, x_step, acc);
    });
  }

 private:
  template <int kTile, class B>
  [[gnu::always_inline]] static inline void UnpackTile(const B& block, const typename U::Head& head,
                                                       Unit* out) {
    head.template Scales<kTile>(out->scale);
    const auto words = U::template Words<kTile>(block, head);
    typename S::Int q[8];  // in registers: stores to a tile cannot be merged, as reads may alias
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) q[j] = words(j);
    SetWords<S>(q, out);
  }

  // Not inlined: it is long, and called for a whole block of each row.
  template <class B>
  [[gnu::noinline]] static void UnpackTiles(const B& block, Unit* __restrict out) {
    const typename U::Head head(block);
    ForEachTile([&]<int kTile>() __attribute__((always_inline)) {
      UnpackTile<kTile>(block, head, out + kTile);
    });
  }

  template <int kGroups, class Source>
  [[gnu::always_inline]] static inline auto Heads(const InPlace<Source>& w) {
    return [&]<int... kGroup>(std::integer_sequence<int, kGroup...>)
        __attribute__((always_inline)) {
      return std::array<typename U::Head, kGroups>{
          typename U::Head(w.block.After(kGroup * w.step))...};
    }
    (std::make_integer_sequence<int, kGroups>());
  }

  // Calls visit.operator()<kTile>() in ascending order.
  template <class Visit>
  [[gnu::always_inline]] static inline void ForEachTile(const Visit& visit) {
    [&]<int... kTile>(std::integer_sequence<int, kTile...>) __attribute__((always_inline)) {
      (visit.template operator()<kTile>(), ...);
    }
    (std::make_integer_sequence<int, static_cast<int>(kUnits)>());
  }
};

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_QUANTISED_CHUNK_H_
