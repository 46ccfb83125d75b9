// Blocks of query rows that meet a tile together. Included by files that are compiled once per
// instruction set.
#ifndef TANDEM_KERNELS_CPU_ATTENTION_ROWS_H_
#define TANDEM_KERNELS_CPU_ATTENTION_ROWS_H_

#include <type_traits>

#include "kernels/cpu/attention_plan.h"

namespace tandem::kernels::cpu::TANDEM_CPU_ISA {

// R rows with a tile: their scores, which become weights, and the part of it that each sees.
template <int R>
struct RowBlock {
  alignas(64) float scores[R * kTilePositions];
  int32_t begin[R], end[R];
};

// Calls visit with a number of rows, 1 to 8, as a constant.
template <typename Visit>
inline void WithRowCount(uint32_t rows, Visit visit) {
  switch (rows) {
    case 8:
      return visit(std::integral_constant<int, 8>());
    case 7:
      return visit(std::integral_constant<int, 7>());
    case 6:
      return visit(std::integral_constant<int, 6>());
    case 5:
      return visit(std::integral_constant<int, 5>());
    case 4:
      return visit(std::integral_constant<int, 4>());
    case 3:
      return visit(std::integral_constant<int, 3>());
    case 2:
      return visit(std::integral_constant<int, 2>());
    default:
      return visit(std::integral_constant<int, 1>());
  }
}

}  // namespace tandem::kernels::cpu::TANDEM_CPU_ISA

#endif  // TANDEM_KERNELS_CPU_ATTENTION_ROWS_H_
