// Tiles of Q8_0 pages whose values stay integers (decision 35). K is bytes, four dimensions of a
// position to a word, which meet queries of 15 bits by integer dot products; V becomes pairs of
// BF16, which hold an int8 exactly. Scales of K multiply the sums of blocks, scales of V the
// weights. Included by files that are compiled once per instruction set.
//
// A query row: for every block of 32 values eight words of high bytes, eight of low bytes
// (value = 128 high + low) and minus the sum of its values; then the step of the values.
#ifndef TANDEM_KERNELS_CPU_ATTENTION_BYTES_H_
#define TANDEM_KERNELS_CPU_ATTENTION_BYTES_H_

#if defined(__AVX512VBMI__)

#include "kernels/cpu/attention/ahead.h"
#include "kernels/cpu/attention/columns.h"
#include "kernels/cpu/attention/integers.h"
#include "kernels/cpu/attention/plan.h"
#include "kernels/cpu/attention/products.h"
#include "kernels/cpu/attention/unpack.h"
#include "kernels/cpu/vec.h"

namespace tandem::kernels::cpu::TANDEM_CPU_ISA {

inline constexpr uint32_t kBlockWords = kBlockValues / 4;
// Words of a block of a query row: high and low bytes, and the sum.
inline constexpr uint32_t kQueryWords = 2 * kBlockWords + 1;

// The bytes of BF16 numbers 0 to 127.
struct Bf16Bytes {
  alignas(64) uint8_t low[128], high[128];

  constexpr Bf16Bytes() : low(), high() {
    for (int i = 0; i < 128; ++i) {
      const auto bits = __builtin_bit_cast(uint32_t, static_cast<float>(i));
      low[i] = static_cast<uint8_t>(bits >> 16);
      high[i] = static_cast<uint8_t>(bits >> 24);
    }
  }
};
inline constexpr Bf16Bytes kBf16Bytes;

// 32 columns of V in the pages, of two positions at a time, in the order of PairColumns. Values are
// within +-127, as rows are written; of rows that were not written any byte gives a finite number.
struct ByteColumns {
  static constexpr uint32_t kColumns = kBlockValues;

  const void* const* rows;
  uint32_t block;

  Vec operator()(int32_t pair, uint32_t column) const {
    const auto values = [&](int32_t row) {
      return static_cast<const tensor::BlockQ8_0*>(rows[row])[block].qs;
    };
    const __m512i two = _mm512_castps_si512(LoadBytes(values(2 * pair), values(2 * pair + 1)));
    const __m512i bytes = _mm512_permutexvar_epi8(Interleaved(), two);
    const __m512i size = _mm512_abs_epi8(bytes);
    const __m512i low = LookUp(kBf16Bytes.low, size);
    const __m512i sign = _mm512_set1_epi8(-128);
    // (bytes & sign) | high
    const __m512i high =
        _mm512_ternarylogic_epi32(bytes, sign, LookUp(kBf16Bytes.high, size), 0xea);
    return _mm512_castsi512_ps(column == 0 ? _mm512_unpacklo_epi8(low, high)
                                           : _mm512_unpackhi_epi8(low, high));
  }

 private:
  static __m512i LookUp(const uint8_t table[128], __m512i index) {
    return _mm512_permutex2var_epi8(_mm512_load_si512(table), index, _mm512_load_si512(table + 64));
  }
  // Byte i of the first half, then byte i of the second.
  static __m512i Interleaved() {
    const __m512i word = _mm512_cvtepi8_epi16(
        _mm256_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20,
                         21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31));
    return _mm512_or_si512(word,
                           _mm512_slli_epi16(_mm512_or_si512(word, _mm512_set1_epi16(32)), 8));
  }
};

using UnpackedColumns = FloatColumns;

inline __m512i Biased(const void* bytes) {
  return _mm512_xor_si512(_mm512_loadu_si512(bytes), _mm512_set1_epi8(-128));
}

// K of 16 positions, in columns of the pages or as LoadK leaves it: words of bytes plus 128, and
// scales of a block.
struct ByteColumnInPages {
  const KeyColumns* keys;
  int32_t position;

  __m512i BiasedWord(uint32_t word) const {
    return Biased(keys->words[position / kGroupPositions] + word * keys->stride);
  }
  Vec Scales(uint32_t block) const { return KeyScales(*keys, position, block); }
};
struct ByteColumnOfTile {
  const float* words;
  const float* scales;

  __m512i BiasedWord(uint32_t word) const {
    return _mm512_loadu_si512(words + word * kTilePositions);
  }
  Vec Scales(uint32_t block) const { return Load(scales + block * kTilePositions); }
};

// REQUIRES: Q8_0 pages that are not latent.
struct ByteProducts {
  static void CopyQuery(const float* q, uint32_t dim, float* out) {
    const auto [step, reciprocal] = StepOfQuery(q, dim, kLargest);
    const Vec per_step = Set1(reciprocal);
    for (uint32_t d = 0; d < dim; d += kBlockValues, out += kQueryWords) {
      const __m512i sum =
          _mm512_add_epi32(StoreSteps(Load(q + d) * per_step, out),
                           StoreSteps(Load(q + d + kLanes) * per_step, out + kLanes / 4));
      out[2 * kBlockWords] = __builtin_bit_cast(float, -_mm512_reduce_add_epi32(sum));
    }
    *out = step;
  }

  // Words of (dim / 4, 64), their bytes plus 128, then scales of (blocks, 64).
  static void LoadK(tensor::Type, const void* const rows[kTilePositions], uint32_t dim, float* out,
                    ReadAhead& ahead) {
    const uint32_t blocks = dim / kBlockValues;
    const Vec sign = _mm512_castsi512_ps(_mm512_set1_epi8(-128));
    float* const scales = out + KWords(dim);
    for (uint32_t b = 0; b < blocks; b += 2) {
      const uint32_t last = b + 1 < blocks ? b + 1 : b;
      for (uint32_t s = b; s <= last; ++s) LoadScales(rows, s, scales + s * kTilePositions);
      for (int32_t i = 0; i < kTilePositions; i += kLanes) {
        Vec words[kLanes];
        for (int j = 0; j < kLanes; ++j) {
          const auto* const row = static_cast<const tensor::BlockQ8_0*>(rows[i + j]);
          words[j] = _mm512_xor_ps(LoadBytes(row[b].qs, row[last].qs), sign);
        }
        Transpose(words);
        float* const line = out + b * kBlockWords * kTilePositions + i;
        for (uint32_t j = 0; j < (last - b + 1) * kBlockWords; ++j)
          Store(line + j * kTilePositions, words[j]);
        ahead.Fetch();
      }
    }
  }
  static uint32_t KWords(uint32_t dim) { return dim / 4 * kTilePositions; }
  static bool TakesWords(tensor::Type) { return true; }
  static void LoadColumns(tensor::Type, const KeyColumns& keys, uint32_t dim, float* out) {
    for (int32_t i = 0; i < kTilePositions; i += kLanes) {
      const ByteColumnInPages column{&keys, i};
      for (uint32_t w = 0; w < dim / 4; ++w)
        _mm512_storeu_si512(out + w * kTilePositions + i, column.BiasedWord(w));
      for (uint32_t b = 0; b < dim / kBlockValues; ++b)
        Store(out + KWords(dim) + b * kTilePositions + i, column.Scales(b));
    }
  }
  template <typename Visit>
  static void WithKeys(tensor::Type, const KeyColumns* columns, const float* tile, uint32_t dim,
                       Visit visit) {
    if (columns != nullptr) {
      return visit([columns](int32_t position) { return ByteColumnInPages{columns, position}; });
    }
    visit([=](int32_t position) {
      return ByteColumnOfTile{tile + position, tile + KWords(dim) + position};
    });
  }

  // Words of (32, dim), then scales of (blocks, 64).
  static void LoadV(tensor::Type, const void* const rows[kTilePositions], uint32_t dim, float* out,
                    ReadAhead& ahead) {
    for (uint32_t b = 0; b < dim / kBlockValues; ++b)
      LoadScales(rows, b, out + VWords(dim) + b * kTilePositions);
    for (int32_t pair = 0; pair < kTilePositions / 2; ++pair) {
      for (uint32_t b = 0; b < dim / kBlockValues; ++b, out += kBlockValues) {
        const ByteColumns v{rows, b};
        Store(out, v(pair, 0));
        Store(out + kLanes, v(pair, kLanes));
      }
      if (pair % 4 == 0) ahead.Fetch();
    }
  }
  static uint32_t VWords(uint32_t dim) { return dim * kTilePositions / 2; }

  static Vec Weigh(float* scores, Vec largest) {
    Vec sum = Zero();
    for (int32_t c = 0; c < kTilePositions; c += kLanes) {
      const Vec weight = ShortExpOfNonPositive(Load(scores + c) - largest);
      Store(scores + c, weight);
      sum = sum + weight;
    }
    return sum;
  }

  static void Order(float* sums, uint32_t columns) { PairProducts::Order(sums, columns); }

 private:
  static constexpr float kLargest = 127 * 128;

  // 16 values in steps, as four words of high and of low bytes; the values.
  static __m512i StoreSteps(Vec steps, float* out) {
    const __m512i value = _mm512_cvtps_epi32(steps);
    const __m512i high = _mm512_srai_epi32(_mm512_add_epi32(value, _mm512_set1_epi32(64)), 7);
    const __m512i low = _mm512_sub_epi32(value, _mm512_slli_epi32(high, 7));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm512_cvtepi32_epi8(high));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + kBlockWords), _mm512_cvtepi32_epi8(low));
    return value;
  }
};

}  // namespace tandem::kernels::cpu::TANDEM_CPU_ISA

#endif

#endif  // TANDEM_KERNELS_CPU_ATTENTION_BYTES_H_
