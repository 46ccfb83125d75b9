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

  template <class Source>
  [[gnu::always_inline]] static inline void Unpack(const Source& source, uint32_t col,
                                                   uint32_t /*count*/, Unit* out) {
    U::Run(source.template Block<Block>(col / kCols), out);
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
};

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_QUANTISED_CHUNK_H_
