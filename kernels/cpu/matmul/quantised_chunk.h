// Chunks of quantised weights: one block of each row, multiplied with quantised activations.
#ifndef TANDEM_KERNELS_CPU_MATMUL_QUANTISED_CHUNK_H_
#define TANDEM_KERNELS_CPU_MATMUL_QUANTISED_CHUNK_H_

#include "kernels/cpu/matmul/product.h"
#include "kernels/cpu/matmul/quant_block.h"
#include "kernels/cpu/matmul/tile.h"

namespace tandem::kernels::cpu {

// S: the instruction set (simd_*.h). U: the format (unpack_*.h).
template <class S, class U>
struct QuantisedChunk {
  static constexpr Activations kActivations = Activations::kQuantBlocks;
  using Unit = typename U::TileT;
  using X = QuantBlock;
  static constexpr uint32_t kCols = U::Block::kValues;
  static constexpr uint32_t kUnits = kCols / QuantBlock::kValues;
  static constexpr uint32_t kXCols = QuantBlock::kValues;
  static constexpr size_t kBytes = sizeof(typename U::Block);

  template <class Source>
  [[gnu::always_inline]] static inline void Unpack(const Source& source, uint32_t col,
                                                   uint32_t /*count*/, Unit* out) {
    U::Run(source.template Block<typename U::Block>(col / kCols), out);
  }

  // The values of the columns unpacked, one column of rows each.
  [[gnu::always_inline]] static inline void Expand(const Unit* units, typename S::Float* out) {
    for (uint32_t u = 0; u < kUnits; ++u) ExpandTile<S>(units[u], out + u * QuantBlock::kValues);
  }

  template <int kGroups, int kTokens>
  [[gnu::always_inline]] static inline void Multiply(const Unit* w, size_t w_step, const X* x,
                                                     size_t x_step, uint32_t /*count*/,
                                                     typename S::Float (&acc)[kGroups][kTokens]) {
    for (uint32_t u = 0; u < kUnits; ++u) {
      MultiplyTile<S, Unit, kGroups, kTokens>(w + u, w_step, x + u, x_step, acc);
    }
  }
};

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_QUANTISED_CHUNK_H_
