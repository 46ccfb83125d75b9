// Tiles of IQ1, eight to a block, for grid_kernels.cc: bytes count eighths of values, plus 16.
#ifndef TANDEM_KERNELS_CPU_MATMUL_UNPACK_EIGHTHS_H_
#define TANDEM_KERNELS_CPU_MATMUL_UNPACK_EIGHTHS_H_

#include <cstddef>
#include <cstdint>

#include "common/tensor/blocks_of_grids.h"
#include "kernels/cpu/matmul/tile.h"
#include "kernels/cpu/matmul/unpack_grids.h"
#include "kernels/cpu/matmul/unpack_words.h"

namespace tandem::kernels::cpu {

template <class S>
struct UnpackIQ1_S {
  using Block = tensor::BlockIQ1_S;
  using TileT = EntriesPlus16<S, 1>;
  static_assert(tensor::kIq1Offset == TileT::Traits::kOffset);
  static constexpr bool kNeverInPlace = true;

  struct Head {
    template <class B>
    [[gnu::always_inline]] explicit Head(const B& block) : d(LoadUnit<S, Block>(block)) {
      block.Load32(offsetof(Block, qs), low);
      block.Load16(offsetof(Block, qh), high);
    }
    template <int kTile>
    [[gnu::always_inline]] void Scales(typename S::Float* out) const {
      out[0] = OddScale<S, 16 * (kTile % 2) + 12, 3>(d, high[kTile / 2]);
    }

    typename S::Float d;
    typename S::Int low[8], high[4];
  };

  template <int kTile, class B>
  [[gnu::always_inline]] static inline auto Words(const B& /*block*/, const Head& head) {
    // The half of this tile in the upper 16 bits.
    const typename S::Int high = S::template ShiftLeft<16 - 16 * (kTile % 2)>(head.high[kTile / 2]);
    const auto index = [ low = head.low[kTile], high = S::template ShiftRight<8>(high) ](int run)
        __attribute__((always_inline)) {
      return WideIndex<S, 7>(low, high, run, 3);
    };
    EightWords<S> words = LookUpEights<S, Block>(index);
    const typename S::Int eighth = S::Or(S::template ShiftRightSigned<31>(high), S::Bytes(1));
#pragma GCC unroll 8
    for (typename S::Int& word : words.word) word = S::AddBytes(word, eighth);
    return words;
  }
};

template <class S>
struct UnpackIQ1_M {
  using Block = tensor::BlockIQ1_M;
  using TileT = EntriesPlus16<S, 2>;
  static constexpr bool kNeverInPlace = true;

  struct Head {
    template <class B>
    [[gnu::always_inline]] explicit Head(const B& block)
        : scales{block.LoadWord(offsetof(Block, scales)),
                 block.LoadWord(offsetof(Block, scales) + 4)} {
      block.Load32(offsetof(Block, qs), low);
      block.Load16(offsetof(Block, qh), high);
      const typename S::Int half = S::Or(S::Or(MoveBits<S, 12, 0>(scales[0], S::Words(0xf)),
                                               MoveBits<S, 28, 4>(scales[0], S::Words(0xf0))),
                                         S::Or(MoveBits<S, 12, 8>(scales[1], S::Words(0xf00)),
                                               MoveBits<S, 28, 12>(scales[1], S::Words(0xf000))));
      d = TimesUnit<S, Block>(S::HalfToFloat(half));
    }
    template <int kTile>
    [[gnu::always_inline]] void Scales(typename S::Float* out) const {
      constexpr int kFrom = 16 * (kTile / 2 % 2) + 6 * (kTile % 2);
      out[0] = OddScale<S, kFrom, 3>(d, scales[kTile / 4]);
      out[1] = OddScale<S, kFrom + 3, 3>(d, scales[kTile / 4]);
    }

    typename S::Float d;
    typename S::Int low[8], high[4], scales[2];
  };

  template <int kTile, class B>
  [[gnu::always_inline]] static inline auto Words(const B& /*block*/, const Head& head) {
    const typename S::Int high =
        MoveBits<S, 16 * (kTile % 2), 8>(head.high[kTile / 2], S::Words(0xffff00));
    const auto index = [ low = head.low[kTile], high ](int run) __attribute__((always_inline)) {
      return WideIndex<S, 7>(low, high, run, 4);
    };
    EightWords<S> words = LookUpEights<S, Block>(index);
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
      // The top bit of a run's four, as the sign of its lane.
      const typename S::Int sign = S::ShiftLeftBy(high, 20 - 4 * (j / 2));
      const typename S::Int eighth = S::Or(S::template ShiftRightSigned<31>(sign), S::Bytes(1));
      words.word[j] = S::AddBytes(words.word[j], eighth);
    }
    return words;
  }
};

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_UNPACK_EIGHTHS_H_
