// Blocks of query rows that meet a tile together. Included by files that are compiled once per
// instruction set.
#ifndef TANDEM_KERNELS_CPU_ATTENTION_ROWS_H_
#define TANDEM_KERNELS_CPU_ATTENTION_ROWS_H_

#include <type_traits>

#include "kernels/cpu/attention/plan.h"

namespace tandem::kernels::cpu::TANDEM_CPU_ISA {

// Rows that are multiplied together, and of a wide block, which is used where all rows are one, so
// that K and V are read once.
inline constexpr int kBlockRows = 6, kWideBlockRows = 8;
// Of R rows that are multiplied in two parts.
template <int R>
inline constexpr int kFirstPart = (R + 1) / 2;

// R rows with a tile: their scores, which become weights, and the part of it that each sees.
template <int R>
struct RowBlock {
  alignas(64) float scores[R * kTilePositions];
  int32_t begin[R], end[R];
};

// Calls visit with a number of rows, 1 to 8, as a constant.
template <int kMost = 8, typename Visit>
inline void WithRowCount(uint32_t rows, Visit visit) {
  if constexpr (kMost > 1) {
    if (rows < kMost) return WithRowCount<kMost - 1>(rows, visit);
  }
  visit(std::integral_constant<int, kMost>());
}

}  // namespace tandem::kernels::cpu::TANDEM_CPU_ISA

#endif  // TANDEM_KERNELS_CPU_ATTENTION_ROWS_H_
