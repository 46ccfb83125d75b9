// Tiles of IQ2 and IQ3, eight to a block, for grid_kernels.cc.
#ifndef TANDEM_KERNELS_CPU_MATMUL_UNPACK_SIGNED_GRIDS_H_
#define TANDEM_KERNELS_CPU_MATMUL_UNPACK_SIGNED_GRIDS_H_

#include <cstddef>
#include <cstdint>

#include "common/tensor/blocks_of_grids.h"
#include "kernels/cpu/matmul/tile.h"
#include "kernels/cpu/matmul/unpack_grids.h"
#include "kernels/cpu/matmul/unpack_words.h"

namespace tandem::kernels::cpu {

template <class S>
struct UnpackIQ2_XXS {
  using Block = tensor::BlockIQ2_XXS;
  using TileT = SignedEntries<S, 1, 43>;
  static constexpr bool kNeverInPlace = true;

  struct Head {
    template <class B>
    [[gnu::always_inline]] explicit Head(const B& block) : d(LoadUnit<S, Block>(block)) {
      block.Load32(offsetof(Block, qs), words);
      block.Load32(offsetof(Block, qs) + 32, words + 8);
    }
    template <int kTile>
    [[gnu::always_inline]] void Scales(typename S::Float* out) const {
      out[0] = OddScale<S, 28, 4>(d, words[2 * kTile + 1]);
    }

    typename S::Float d;
    typename S::Int words[16];  // of each tile indices, then signs and scale
  };

  template <int kTile, class B>
  [[gnu::always_inline]] static inline auto Words(const B& /*block*/, const Head& head) {
    const auto index = [indices = head.words[2 * kTile]](int run) __attribute__((always_inline)) {
      return BitsFrom<S>(indices, 8 * run, 0xff);
    };
    return WithSigns<S, TileT>(LookUpEights<S, Block>(index),
                               SignsOfSevens<S>(head.words[2 * kTile + 1]));
  }
};

template <class S>
struct UnpackIQ2_XS {
  using Block = tensor::BlockIQ2_XS;
  using TileT = SignedEntries<S, 2, 43>;
  static constexpr bool kNeverInPlace = true;

  struct Head {
    template <class B>
    [[gnu::always_inline]] explicit Head(const B& block)
        : d(LoadUnit<S, Block>(block)),
          scales{block.LoadWord(offsetof(Block, scales)),
                 block.LoadWord(offsetof(Block, scales) + 4)} {
      block.Load32(offsetof(Block, qs), words);
      block.Load32(offsetof(Block, qs) + 32, words + 8);
    }
    template <int kTile>
    [[gnu::always_inline]] void Scales(typename S::Float* out) const {
      ScalesOfHalves<S, kTile>(d, scales, out);
    }

    typename S::Float d;
    typename S::Int scales[2];
    typename S::Int words[16];  // two runs each
  };

  template <int kTile, class B>
  [[gnu::always_inline]] static inline auto Words(const B& /*block*/, const Head& head) {
    const typename S::Int* const runs = head.words + 2 * kTile;
    const auto index = [runs](int run) __attribute__((always_inline)) {
      return BitsFrom<S>(runs[run / 2], 16 * (run % 2), 511);
    };
    const typename S::Int first = S::Or(MoveBits<S, 9, 0>(runs[0], S::Words(0x7f)),
                                        MoveBits<S, 25, 8>(runs[0], S::Words(0x7f00)));
    const typename S::Int last = S::Or(MoveBits<S, 9, 16>(runs[1], S::Words(0x7f0000)),
                                       MoveBits<S, 25, 24>(runs[1], S::Words(0x7f000000)));
    return WithSigns<S, TileT>(LookUpEights<S, Block>(index),
                               WithEighthSigns<S>(S::Or(first, last)));
  }
};

template <class S>
struct UnpackIQ2_S {
  using Block = tensor::BlockIQ2_S;
  using TileT = SignedEntries<S, 2, 43>;
  static constexpr bool kNeverInPlace = true;

  struct Head {
    template <class B>
    [[gnu::always_inline]] explicit Head(const B& block) : d(LoadUnit<S, Block>(block)) {
      block.Load32(offsetof(Block, qs), low);
      block.Load32(offsetof(Block, signs), signs);
      block.Load16(offsetof(Block, qh), rest);
    }
    template <int kTile>
    [[gnu::always_inline]] void Scales(typename S::Float* out) const {
      ScalesOfHalves<S, kTile>(d, rest + 2, out);
    }

    typename S::Float d;
    typename S::Int low[8], signs[8];
    typename S::Int rest[4];  // two words of upper bits, two of scales
  };

  template <int kTile, class B>
  [[gnu::always_inline]] static inline auto Words(const B& /*block*/, const Head& head) {
    const auto index = [
      low = head.low[kTile],
      high = MoveBits<S, 8 * (kTile % 4), 8>(head.rest[kTile / 4], S::Words(0xff00))
    ](int run) __attribute__((always_inline)) {
      return WideIndex<S, 3>(low, high, run, 2);
    };
    return WithSigns<S, TileT>(LookUpEights<S, Block>(index), head.signs[kTile]);
  }
};

template <class S>
struct UnpackIQ3_XXS {
  using Block = tensor::BlockIQ3_XXS;
  using TileT = SignedEntries<S, 1, 62>;
  static constexpr bool kNeverInPlace = true;

  struct Head {
    template <class B>
    [[gnu::always_inline]] explicit Head(const B& block) : d(LoadUnit<S, Block>(block)) {
      block.Load32(offsetof(Block, tails), tails);
    }
    template <int kTile>
    [[gnu::always_inline]] void Scales(typename S::Float* out) const {
      out[0] = OddScale<S, 28, 4>(d, tails[kTile]);
    }

    typename S::Float d;
    typename S::Int tails[8];
  };

  template <int kTile, class B>
  [[gnu::always_inline]] static inline auto Words(const B& block, const Head& head) {
    const auto index = [indices = block.template Words<4>(offsetof(Block, qs) + kTile / 2 * 16)](
        int run) __attribute__((always_inline)) {
      return BitsFrom<S>(indices[kTile % 2 * 2 + run / 4], 8 * (run % 4), 0xff);
    };
    return WithSigns<S, TileT>(LookUpFours<S, Block>(index), SignsOfSevens<S>(head.tails[kTile]));
  }
};

template <class S>
struct UnpackIQ3_S {
  using Block = tensor::BlockIQ3_S;
  using TileT = EntriesPlus16<S, 1>;
  static constexpr bool kNeverInPlace = true;

  struct Head {
    template <class B>
    [[gnu::always_inline]] explicit Head(const B& block)
        : d(LoadUnit<S, Block>(block)),
          high{block.LoadWord(offsetof(Block, qh)), block.LoadWord(offsetof(Block, qh) + 4)},
          scales(block.LoadWord(offsetof(Block, scales))) {
      block.Load32(offsetof(Block, signs), signs);
    }
    template <int kTile>
    [[gnu::always_inline]] void Scales(typename S::Float* out) const {
      out[0] = OddScale<S, 4 * kTile, 4>(d, scales);
    }

    typename S::Float d;
    typename S::Int high[2], scales, signs[8];
  };

  template <int kTile, class B>
  [[gnu::always_inline]] static inline auto Words(const B& block, const Head& head) {
    const auto index = [
      low = block.template Words<4>(offsetof(Block, qs) + kTile / 2 * 16),
      high = MoveBits<S, 8 * (kTile % 4), 8>(head.high[kTile / 4], S::Words(0xff00))
    ](int run) __attribute__((always_inline)) {
      return S::Or(BitsFrom<S>(low[kTile % 2 * 2 + run / 4], 8 * (run % 4), 0xff),
                   BitsFrom<S>(high, run, 0x100));
    };
    return WithSigns<S, TileT>(LookUpFours<S, Block>(index), head.signs[kTile]);
  }
};

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_UNPACK_SIGNED_GRIDS_H_
