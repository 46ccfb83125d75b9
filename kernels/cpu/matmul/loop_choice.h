// Which of Multiply's loops a product takes: by instruction set, format, and how weights lie.
#ifndef TANDEM_KERNELS_CPU_MATMUL_LOOP_CHOICE_H_
#define TANDEM_KERNELS_CPU_MATMUL_LOOP_CHOICE_H_

#include <cstdint>

#include "kernels/cpu/matmul/product.h"
#include "kernels/cpu/matmul/weight_source.h"

namespace tandem::kernels::cpu {

inline constexpr uint32_t kMostBoundByMemory = 4;  // tokens; products of more take longer
inline constexpr uint32_t kMostOneSets = 16;       // tokens; a copy pays off for more

// S: the instruction set (simd_*.h). F: a chunk format (multiply.h). Source: of weight_source.h.
template <class S, class F, class Source>
struct LoopChoice {
  static_assert(!S::kPairsOfFew || S::kGroups == 2);
  static constexpr bool kQuantised = F::kActivations == Activations::kQuantBlocks;
  static constexpr bool kUnpacksInPlace = Source::kPanels && F::kInPlace == InPlaceUse::kUnpacking;
  static constexpr bool kAlwaysInPlace =
      Source::kPanels && S::kInPlace && F::kInPlace == InPlaceUse::kAlways;
  // AVX-512 multiplies floats in panels with few tokens as they are, too, two panels at once.
  // Software prefetches took a quarter of their speed there.
  static constexpr bool kStreams = kAlwaysInPlace && !kQuantised;
  // Up to kMostBoundByMemory tokens are multiplied with two panels at once, as they are unpacked.
  // Most formats with chunks of 256 columns are slower so: their scales need the registers.
  static constexpr bool kHasPairs =
      Source::kPanels && S::kPairsOfFew && (F::kUnits == 1 || !kQuantised);
  // Panels of many tiles per chunk do without RunOneSet: storing those costs more than products.
  static constexpr bool kHasOneSet = kHasPairs         ? (F::kTokensOfGroup > kMostBoundByMemory)
                                     : kUnpacksInPlace ? F::kUnits == 1
                                                       : !kStreams;
  // Panels whose words are units already, and that are not always read in place: for few tokens a
  // copy costs more than it saves. Floats need the sums of more tokens, and of both groups.
  static constexpr bool kHasOneSets =
      Source::kPanels && F::kInPlace == InPlaceUse::kAlways && !S::kInPlace && kQuantised;
  // Tokens that the loops above take.
  static constexpr uint32_t kTaken = kHasOneSet  ? F::kTokensOfGroup
                                     : kHasPairs ? kMostBoundByMemory
                                                 : 0;
  static constexpr bool kHasInPlace = kUnpacksInPlace && S::kMostInPlace > kTaken;
};

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_LOOP_CHOICE_H_
