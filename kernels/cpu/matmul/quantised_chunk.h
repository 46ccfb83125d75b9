// Chunks of quantised weights: one block of each row, multiplied with quantised activations.
#ifndef TANDEM_KERNELS_CPU_MATMUL_QUANTISED_CHUNK_H_
#define TANDEM_KERNELS_CPU_MATMUL_QUANTISED_CHUNK_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/cpu/matmul/product.h"
#include "kernels/cpu/matmul/quant_block.h"
#include "kernels/cpu/matmul/tile.h"

namespace tandem::kernels::cpu {

// S: the instruction set (simd_*.h). U: the format (unpack_*.h).
template <class S, class U>
struct QuantisedChunk {
  static constexpr Activations kActivations = Activations::kQuantBlocks;
  using Block = typename U::Block;
  using Unit = typename U::TileT;
  using X = QuantBlock;
  static constexpr uint32_t kCols = Block::kValues;
  static constexpr uint32_t kUnits = kCols / QuantBlock::kValues;
  static constexpr uint32_t kXCols = QuantBlock::kValues;
  static constexpr size_t kBytes = sizeof(Block);
  static constexpr bool kInPlace = requires { &U::FromWord; };
  static constexpr bool kManyTiles = kUnits > 1;

  template <class Source>
  [[gnu::always_inline]] static inline void Unpack(const Source& source, uint32_t col,
                                                   uint32_t /*count*/, Unit* out) {
    const auto block = source.template Block<Block>(col / kCols);
    if constexpr (kManyTiles) {
      UnpackTiles(block, out);
    } else {
      U::Run(block, out);
    }
  }

  // acc[0][token] += the products of a chunk, tile by tile as it is unpacked; calls fetch(kTile)
  // before each.
  template <int kTokens, class Source, class Fetch>
  [[gnu::always_inline]] static inline void UnpackAndMultiply(
      const Source& source, uint32_t col, const X* x, size_t x_step, const Fetch& fetch,
      typename S::Float (&acc)[1][kTokens]) {
    const auto block = source.template Block<Block>(col / kCols);
    const typename U::Head head(block);
    ForEachTile([&]<int kTile>() __attribute__((always_inline)) {
      fetch(kTile);
      Unit tile;
      U::template Run<kTile>(block, head, &tile);
      MultiplyTile<S>(UnpackedTiles<S, Unit>{&tile, 0}, x + kTile, x_step, acc);
    });
  }

  // The values of the columns unpacked, one column of rows each.
  [[gnu::always_inline]] static inline void Expand(const Unit* units, typename S::Float* out) {
    for (uint32_t u = 0; u < kUnits; ++u) ExpandTile<S>(units[u], out + u * QuantBlock::kValues);
  }

  struct Unpacked {
    [[gnu::always_inline]] UnpackedTiles<S, Unit> Tiles(uint32_t u) const {
      return {units + u, step};
    }

    const Unit* units;
    size_t step;
  };

  // Of formats with one tile per block: tiles of `source` and of the panels `step` bytes after it,
  // word by word.
  template <class Source>
  class InPlace {
   public:
    using Traits = typename Unit::Traits;

    [[gnu::always_inline]] InPlace(const Source& source, size_t step, size_t chunk)
        : block_(source.template Block<Block>(chunk)), step_(step) {}

    [[gnu::always_inline]] const InPlace& Tiles(uint32_t /*u*/) const { return *this; }
    [[gnu::always_inline]] typename S::Int Word(int group, int j) const {
      return U::FromWord(block_.After(group * step_).LoadWord(offsetof(Block, qs) + 4 * j));
    }
    [[gnu::always_inline]] typename S::Float Scale(int group, int /*i*/) const {
      return block_.After(group * step_).template LoadHalf<offsetof(Block, d)>();
    }

   private:
    decltype(std::declval<Source>().template Block<Block>(0)) block_;
    size_t step_;
  };

  template <int kGroups, int kTokens, class Weights>
  [[gnu::always_inline]] static inline void Multiply(const Weights& w, const X* x, size_t x_step,
                                                     uint32_t /*count*/,
                                                     typename S::Float (&acc)[kGroups][kTokens]) {
    for (uint32_t u = 0; u < kUnits; ++u) MultiplyTile<S>(w.Tiles(u), x + u, x_step, acc);
  }

 private:
  // Not inlined: it is long, and called for a whole block of each row.
  template <class B>
  [[gnu::noinline]] static void UnpackTiles(const B& block, Unit* __restrict out) {
    const typename U::Head head(block);
    ForEachTile([&]<int kTile>() __attribute__((always_inline)) {
      U::template Run<kTile>(block, head, out + kTile);
    });
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
