// Rows of K-quants to tiles, for blocks_of_256.cc.
#ifndef TANDEM_KERNELS_CPU_MATMUL_UNPACK_BLOCKS_OF_256_H_
#define TANDEM_KERNELS_CPU_MATMUL_UNPACK_BLOCKS_OF_256_H_

#include "common/tensor/blocks_of_256.h"
#include "kernels/cpu/matmul/tile.h"
#include "kernels/cpu/matmul/unpack_words.h"

namespace tandem::kernels::cpu {

// The scales and minimums of Q4_K and Q5_K rows to tiles.
template <class S, int kLargest>
struct UnpackKScales {
  using Int = typename S::Int;
  using Float = typename S::Float;
  using TileT = Tile<S, TileTraits<0, 1, true, false, kLargest>>;

  // The 16 bytes that begin each block, d and dmin (halves) and KScales: to scale and minimum of
  // eight tiles.
  template <class B>
  [[gnu::always_inline]] static inline void Run(const B& block, TileT* out) {
    Int head[4];  // d and dmin, then the three words of scales
    block.Load16(0, head);
    const Float d = S::HalfToFloat(head[0]);
    const Float dmin = S::HalfToFloat(S::template ShiftRight<16>(head[0]));
    // Byte g of scale[h] and min[h] belongs to group 4h + g (packed as in tensor::KScales).
    const Int low4 = S::Bytes(0x0f);
    const Int high2 = S::Bytes(0x30);
    const Int six = S::Bytes(0x3f);
    const Int scale[2] = {
        S::And(head[1], six),
        S::Or(S::And(head[3], low4), S::And(S::template ShiftRight<2>(head[1]), high2))};
    const Int min[2] = {S::And(head[2], six),
                        S::Or(S::And(S::template ShiftRight<4>(head[3]), low4),
                              S::And(S::template ShiftRight<2>(head[2]), high2))};
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) {
      Set<0>(d, dmin, scale[h], min[h], out + 4 * h);
      Set<1>(d, dmin, scale[h], min[h], out + 4 * h + 1);
      Set<2>(d, dmin, scale[h], min[h], out + 4 * h + 2);
      Set<3>(d, dmin, scale[h], min[h], out + 4 * h + 3);
    }
  }

 private:
  template <int kByte>
  [[gnu::always_inline]] static inline void Set(Float d, Float dmin, Int scales, Int mins,
                                                TileT* out) {
    out->scale[0] = S::Mul(d, S::ToFloat(S::template Byte<kByte>(scales)));
    out->scale[1] = S::Mul(dmin, S::ToFloat(S::template Byte<kByte>(mins)));
  }
};

template <class S>
struct UnpackQ2_K {
  using Block = tensor::BlockQ2_K;
  using Int = typename S::Int;
  using Float = typename S::Float;
  using TileT = Tile<S, TileTraits<0, 2, true, false, 3>>;  // scale and minimum per 16 values

  // One block of each row: eight tiles.
  template <class B>
  [[gnu::always_inline]] static inline void Run(const B& block, TileT* out) {
    const Int head = block.LoadWord(offsetof(Block, d));
    const Float d = S::HalfToFloat(head);
    const Float dmin = S::HalfToFloat(S::template ShiftRight<16>(head));
    Int words[4];  // of scales
    block.Load16(offsetof(Block, scales), words);
    const Int low4 = S::Bytes(0x0f);
#pragma GCC unroll 4
    for (int w = 0; w < 4; ++w) {
      const Int scales = S::And(words[w], low4);
      const Int mins = S::And(S::template ShiftRight<4>(words[w]), low4);
      TileT* two = out + 2 * w;
      two[0].scale[0] = S::Mul(d, S::ToFloat(S::template Byte<0>(scales)));
      two[0].scale[1] = S::Mul(d, S::ToFloat(S::template Byte<1>(scales)));
      two[0].scale[2] = S::Mul(dmin, S::ToFloat(S::template Byte<0>(mins)));
      two[0].scale[3] = S::Mul(dmin, S::ToFloat(S::template Byte<1>(mins)));
      two[1].scale[0] = S::Mul(d, S::ToFloat(S::template Byte<2>(scales)));
      two[1].scale[1] = S::Mul(d, S::ToFloat(S::template Byte<3>(scales)));
      two[1].scale[2] = S::Mul(dmin, S::ToFloat(S::template Byte<2>(mins)));
      two[1].scale[3] = S::Mul(dmin, S::ToFloat(S::template Byte<3>(mins)));
    }
    for (int half = 0; half < 2; ++half) {
      LoadPairsOfBits<S>(block, offsetof(Block, qs) + 32 * half, out + 4 * half);
    }
  }
};

template <class S>
struct UnpackQ3_K {
  using Block = tensor::BlockQ3_K;
  using Int = typename S::Int;
  using Float = typename S::Float;
  using TileT =
      Tile<S, TileTraits<2, 2, false, false, 7>>;  // three bits - 4, a scale per 16 values

  // One block of each row: eight tiles.
  template <class B>
  [[gnu::always_inline]] static inline void Run(const B& block, TileT* out) {
    SetScales(block, out);
    for (int half = 0; half < 2; ++half) {
      LoadPairsOfBits<S>(block, offsetof(Block, qs) + 32 * half, out + 4 * half);
    }
    Int third[8];
    block.Load32(offsetof(Block, hmask), third);
    AddThirdBit<0>(third, out);
    AddThirdBit<1>(third, out);
    AddThirdBit<2>(third, out);
    AddThirdBit<3>(third, out);
    AddThirdBit<4>(third, out);
    AddThirdBit<5>(third, out);
    AddThirdBit<6>(third, out);
    AddThirdBit<7>(third, out);
  }

 private:
  template <class B>
  [[gnu::always_inline]] static inline void SetScales(const B& block, TileT* out) {
    // The last four bytes of qs, then the twelve of scales; d comes last in the block.
    Int words[4];
    block.Load16(offsetof(Block, scales) - 4, words);
    const Float d = block.template LoadHalf<offsetof(Block, d)>();
    const Int low4 = S::Bytes(0x0f);
    const Int high2 = S::Bytes(0x30);
    // Byte j of word w: number 4w + j.
    const Int six[4] = {
        S::Or(MoveBits<S, 0, 0>(words[1], low4), MoveBits<S, 0, 4>(words[3], high2)),
        S::Or(MoveBits<S, 0, 0>(words[2], low4), MoveBits<S, 2, 4>(words[3], high2)),
        S::Or(MoveBits<S, 4, 0>(words[1], low4), MoveBits<S, 4, 4>(words[3], high2)),
        S::Or(MoveBits<S, 4, 0>(words[2], low4), MoveBits<S, 6, 4>(words[3], high2))};
#pragma GCC unroll 4
    for (int w = 0; w < 4; ++w) {
      TileT* two = out + 2 * w;
      two[0].scale[0] = S::Mul(d, Less32(S::template Byte<0>(six[w])));
      two[0].scale[1] = S::Mul(d, Less32(S::template Byte<1>(six[w])));
      two[1].scale[0] = S::Mul(d, Less32(S::template Byte<2>(six[w])));
      two[1].scale[1] = S::Mul(d, Less32(S::template Byte<3>(six[w])));
    }
  }

  [[gnu::always_inline]] static inline Float Less32(Int a) {
    return S::ToFloat(S::SubWords(a, S::Words(32)));
  }

  // Of the 32 values of tile kTile.
  template <int kTile>
  [[gnu::always_inline]] static inline void AddThirdBit(const Int* third, TileT* out) {
    const Int bit2 = S::Bytes(0x04);
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
      out[kTile].q[j] = S::Or(out[kTile].q[j], MoveBits<S, kTile, 2>(third[j], bit2));
    }
  }
};

template <class S>
struct UnpackQ4_K {
  using Block = tensor::BlockQ4_K;
  using TileT = typename UnpackKScales<S, 15>::TileT;

  // One block of each row: eight tiles, one per group.
  template <class B>
  [[gnu::always_inline]] static inline void Run(const B& block, TileT* out) {
    UnpackKScales<S, 15>::Run(block, out);
    const typename S::Int low4 = S::Bytes(0x0f);
    for (int pair = 0; pair < 4; ++pair) {
      typename S::Int nibbles[8];
      block.Load32(offsetof(Block, qs) + 32 * pair, nibbles);
#pragma GCC unroll 8
      for (int j = 0; j < 8; ++j) {
        out[2 * pair].q[j] = S::And(nibbles[j], low4);
        out[2 * pair + 1].q[j] = S::And(S::template ShiftRight<4>(nibbles[j]), low4);
      }
    }
  }
};

template <class S>
struct UnpackQ5_K {
  using Block = tensor::BlockQ5_K;
  using Int = typename S::Int;
  using TileT = typename UnpackKScales<S, 31>::TileT;

  // One block of each row: eight tiles, one per group.
  template <class B>
  [[gnu::always_inline]] static inline void Run(const B& block, TileT* out) {
    UnpackKScales<S, 31>::Run(block, out);
    Int fifth[8];
    block.Load32(offsetof(Block, qh), fifth);
    RunPair<0>(block, fifth, out);
    RunPair<1>(block, fifth, out);
    RunPair<2>(block, fifth, out);
    RunPair<3>(block, fifth, out);
  }

 private:
  // Groups 2 kPair and 2 kPair + 1.
  template <int kPair, class B>
  [[gnu::always_inline]] static inline void RunPair(const B& block, const Int* fifth, TileT* out) {
    const Int low4 = S::Bytes(0x0f);
    const Int bit4 = S::Bytes(0x10);
    Int nibbles[8];
    block.Load32(offsetof(Block, qs) + 32 * kPair, nibbles);
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
      out[2 * kPair].q[j] =
          S::Or(S::And(nibbles[j], low4), MoveBits<S, 2 * kPair, 4>(fifth[j], bit4));
      out[2 * kPair + 1].q[j] = S::Or(S::And(S::template ShiftRight<4>(nibbles[j]), low4),
                                      MoveBits<S, 2 * kPair + 1, 4>(fifth[j], bit4));
    }
  }
};

template <class S>
struct UnpackQ6_K {
  using Block = tensor::BlockQ6_K;
  using Int = typename S::Int;
  using TileT =
      Tile<S, TileTraits<5, 2, false, false, 63>>;  // six bits - 32, a scale per 16 values

  // One block of each row: eight tiles.
  template <class B>
  [[gnu::always_inline]] static inline void Run(const B& block, TileT* out) {
    const typename S::Float d = block.template LoadHalf<offsetof(Block, d)>();
    Int scales[4];
    block.Load16(offsetof(Block, scales), scales);
#pragma GCC unroll 4
    for (int word = 0; word < 4; ++word) {
      TileT* two = out + 2 * word;
      two[0].scale[0] = S::Mul(d, S::ToFloat(S::template SignedByte<0>(scales[word])));
      two[0].scale[1] = S::Mul(d, S::ToFloat(S::template SignedByte<1>(scales[word])));
      two[1].scale[0] = S::Mul(d, S::ToFloat(S::template SignedByte<2>(scales[word])));
      two[1].scale[1] = S::Mul(d, S::ToFloat(S::template SignedByte<3>(scales[word])));
    }
    for (int half = 0; half < 2; ++half) RunHalf(block, half, out + 4 * half);
  }

 private:
  template <class B>
  [[gnu::always_inline]] static inline void RunHalf(const B& block, int half, TileT* out) {
    const Int low4 = S::Bytes(0x0f);
    const Int high2 = S::Bytes(0x30);
    Int high[8];
    block.Load32(offsetof(Block, qh) + 32 * half, high);
#pragma GCC unroll 2
    for (int k = 0; k < 2; ++k) {
      Int low[8];
      block.Load32(offsetof(Block, ql) + 64 * half + 32 * k, low);
#pragma GCC unroll 8
      for (int j = 0; j < 8; ++j) {
        // Bits 2k, 2k + 1 of qh belong to value 32 k + l, bits 2k + 4, 2k + 5 to 32 (k + 2) + l.
        const Int first =
            k == 0 ? S::template ShiftLeft<4>(high[j]) : S::template ShiftLeft<2>(high[j]);
        const Int second = k == 0 ? high[j] : S::template ShiftRight<2>(high[j]);
        out[k].q[j] = S::Or(S::And(low[j], low4), S::And(first, high2));
        out[k + 2].q[j] =
            S::Or(S::And(S::template ShiftRight<4>(low[j]), low4), S::And(second, high2));
      }
    }
  }
};

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_UNPACK_BLOCKS_OF_256_H_
