// What a tile of attention holds, and how it is multiplied: floats, of pages of any type, or pairs
// of BF16, of BF16 pages where the machine multiplies them (decision 23); integers of Q8_0 pages
// are in bytes.h and int16.h. A tile of K has a word for every dimension, or every two, of 64
// positions; a tile of V a row of words for every position, or every two. Included by files that
// are compiled once per instruction set.
#ifndef TANDEM_KERNELS_CPU_ATTENTION_PRODUCTS_H_
#define TANDEM_KERNELS_CPU_ATTENTION_PRODUCTS_H_

#include "kernels/cpu/attention/ahead.h"
#include "kernels/cpu/attention/columns.h"
#include "kernels/cpu/attention/plan.h"
#include "kernels/cpu/attention/unpack.h"
#include "kernels/cpu/vec.h"

namespace tandem::kernels::cpu::TANDEM_CPU_ISA {

struct FloatProducts {
  static constexpr int kOfWord = 1;  // values of a word

  static Vec MulAdd(Vec a, Vec b, Vec sum) { return Fma(a, b, sum); }
  // The part of a word of V that belongs to positions [begin, end).
  static Vec Within(Vec value, int32_t, int32_t, int32_t) { return value; }

  static void CopyQuery(const float* q, uint32_t dim, float* out) {
    __builtin_memcpy(out, q, dim * sizeof(float));
  }
  static void LoadK(tensor::Type type, const void* const rows[kTilePositions], uint32_t dim,
                    float* out, ReadAhead& ahead) {
    WithRows(type, [&](auto page) { UnpackTransposed<decltype(page)>(rows, dim, out, ahead); });
  }
  // Whether products take words of K in columns where they lie.
  static bool TakesWords(tensor::Type type) { return type != tensor::Type::kQ8_0; }
  // Calls visit with the K of a tile: in columns of the pages, or in `tile` if `columns` is null.
  template <typename Visit>
  static void WithKeys(tensor::Type type, const KeyColumns* columns, const float* tile, uint32_t,
                       Visit visit) {
    if (columns == nullptr) return visit(KeysOfTile{tile});
    if (type == tensor::Type::kF16) return visit(KeysInPages<F16Rows>{*columns});
    if (type == tensor::Type::kBF16) return visit(Bf16KeysInPages{*columns});
    visit(KeysInPages<F32Rows>{*columns});
  }
  static void LoadColumns(tensor::Type type, const KeyColumns& keys, uint32_t dim, float* out) {
    WithRows(type, [&](auto page) { ColumnUnpacker<decltype(page)>::Run(keys, dim, out); });
  }
  static void LoadV(tensor::Type type, const void* const rows[kTilePositions], uint32_t dim,
                    float* out, ReadAhead& ahead) {
    WithRows(type, [&](auto page) { Unpack<decltype(page)>(rows, dim, out, ahead); });
  }
  // Calls visit(v) with columns of V as they lie in the pages, kColumns from column `at` on.
  template <typename Visit>
  static void WithPageColumns(tensor::Type type, const void* const rows[kTilePositions],
                              uint32_t at, Visit visit) {
    WithRows(type, [&](auto page) { visit(PageColumns<decltype(page)>(rows, at)); });
  }

  // Scores of a row in a tile become weights; returns their sum in lanes.
  static Vec Weigh(float* scores, Vec largest) {
    Vec sum = Zero();
    for (int32_t c = 0; c < kTilePositions; c += kLanes) {
      const Vec weight = ExpOfNonPositive(Load(scores + c) - largest);
      Store(scores + c, weight);
      sum = sum + weight;
    }
    return sum;
  }

  // Puts a row of sums in the order of columns.
  static void Order(float*, uint32_t) {}
};

#if defined(__AVX512BF16__)

inline Vec InterleaveLow(Vec a, Vec b) {
  return _mm512_castsi512_ps(_mm512_unpacklo_epi16(_mm512_castps_si512(a), _mm512_castps_si512(b)));
}
inline Vec InterleaveHigh(Vec a, Vec b) {
  return _mm512_castsi512_ps(_mm512_unpackhi_epi16(_mm512_castps_si512(a), _mm512_castps_si512(b)));
}
// To nearest, ties to even; `a` in the lower half.
inline Vec RoundToBf16(Vec a, Vec b) {
  return _mm512_castsi512_ps(reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(b, a)));
}

// exp of values <= 0 and NaN, for weights that are rounded to BF16: relative error below 2^-17.
// With x / ln 2 = n + r, 0 <= r < 1, that is 2^n times the polynomial 1 + r q(r), where q takes the
// values of (2^r - 1) / r at four Chebyshev nodes.
inline Vec ShortExpOfNonPositive(Vec x) {
  const Vec t = x * Set1(1.44269504f);
  const Vec r =
      _mm512_reduce_ps(t, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);  // minus infinity: 0
  Vec p = Set1(0.0127631139f);
  p = Fma(p, r, Set1(0.0534410293f));
  p = Fma(p, r, Set1(0.240647048f));
  p = Fma(p, r, Set1(0.693133993f));
  p = Fma(p, r, Set1(1.0f));
  return _mm512_scalef_ps(p, t);  // by 2 to the floor of t
}

// 32 columns of V in the pages. They are interleaved in quarters of a vector, so that their order
// is 0 to 3, 8 to 11, ... and then 4 to 7, 12 to 15, ...
struct PairColumns {
  static constexpr uint32_t kColumns = 32;

  const void* const* rows;
  uint32_t at;

  Vec operator()(int32_t pair, uint32_t column) const {
    const Vec a = F32Rows::Load(rows[2 * pair], at / 2),
              b = F32Rows::Load(rows[2 * pair + 1], at / 2);
    return column == 0 ? InterleaveLow(a, b) : InterleaveHigh(a, b);
  }
};

// Queries and weights are rounded to BF16, too. REQUIRES: sizes of heads are multiples of 32, and
// pages are not latent.
struct PairProducts {
  static constexpr int kOfWord = 2;

  static Vec MulAdd(Vec a, Vec b, Vec sum) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
  }
  static Vec Within(Vec value, int32_t pair, int32_t begin, int32_t end) {
    uint32_t mask = 2 * pair < begin ? 0xffff0000u : 0xffffffffu;
    if (2 * pair + 1 >= end) mask &= 0xffffu;
    return _mm512_and_ps(value, Set1(__builtin_bit_cast(float, mask)));
  }

  static void CopyQuery(const float* q, uint32_t dim, float* out) {
    for (uint32_t d = 0; d < dim; d += 2 * kLanes)
      Store(out + d / 2, RoundToBf16(Load(q + d), Load(q + d + kLanes)));
  }
  // Pairs are transposed like floats.
  static void LoadK(tensor::Type, const void* const rows[kTilePositions], uint32_t dim, float* out,
                    ReadAhead& ahead) {
    UnpackTransposed<F32Rows>(rows, dim / 2, out, ahead);
  }
  static bool TakesWords(tensor::Type) { return true; }
  template <typename Visit>
  static void WithKeys(tensor::Type, const KeyColumns* columns, const float* tile, uint32_t,
                       Visit visit) {
    if (columns == nullptr) return visit(KeysOfTile{tile});
    visit(KeysInPages<F32Rows>{*columns});
  }
  static void LoadColumns(tensor::Type, const KeyColumns& keys, uint32_t dim, float* out) {
    ColumnUnpacker<F32Rows>::Run(keys, dim / 2, out);
  }
  static void LoadV(tensor::Type, const void* const rows[kTilePositions], uint32_t dim, float* out,
                    ReadAhead& ahead) {
    for (int32_t pair = 0; pair < kTilePositions / 2; ++pair) {
      for (uint32_t at = 0; at < dim; at += PairColumns::kColumns, out += PairColumns::kColumns) {
        const PairColumns v{rows, at};
        Store(out, v(pair, 0));
        Store(out + kLanes, v(pair, kLanes));
      }
      if (pair % 4 == 0) ahead.Fetch();
    }
  }
  template <typename Visit>
  static void WithPageColumns(tensor::Type, const void* const rows[kTilePositions], uint32_t at,
                              Visit visit) {
    visit(PairColumns{rows, at});
  }

  // The weights are those that are multiplied: their sum is of rounded ones.
  static Vec Weigh(float* scores, Vec largest) {
    const Vec ones = RoundToBf16(Set1(1.0f), Set1(1.0f));
    Vec sum = Zero();
    for (int32_t c = 0; c < kTilePositions; c += 2 * kLanes) {
      const Vec weights = RoundToBf16(ShortExpOfNonPositive(Load(scores + c) - largest),
                                      ShortExpOfNonPositive(Load(scores + c + kLanes) - largest));
      Store(scores + c / 2, weights);
      sum = MulAdd(weights, ones, sum);
    }
    return sum;
  }

  static void Order(float* sums, uint32_t columns) {
    const __m512i first = _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
    const __m512i second = _mm512_add_epi32(first, _mm512_set1_epi32(8));
    for (uint32_t c = 0; c < columns; c += 2 * kLanes) {
      const Vec low = Load(sums + c), high = Load(sums + c + kLanes);
      Store(sums + c, _mm512_permutex2var_ps(low, first, high));
      Store(sums + c + kLanes, _mm512_permutex2var_ps(low, second, high));
    }
  }
};

#endif

#if defined(TANDEM_INTEGER_ATTENTION) && defined(__AVX512VBMI__)
struct ByteProducts;  // bytes.h
using Products = ByteProducts;
#elif defined(TANDEM_INTEGER_ATTENTION)
struct Int16Products;  // int16.h
using Products = Int16Products;
#elif defined(__AVX512BF16__)
using Products = PairProducts;
#else
using Products = FloatProducts;
#endif

}  // namespace tandem::kernels::cpu::TANDEM_CPU_ISA

#endif  // TANDEM_KERNELS_CPU_ATTENTION_PRODUCTS_H_
