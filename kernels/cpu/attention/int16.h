// Tiles of Q8_0 pages whose values are multiplied as 16-bit integers, two to a word, without
// AVX-512 (decision 55). K meets queries of 16 bits, V weights of 15. Scales of K multiply the sums
// of blocks, scales of V the weights before they are rounded. Included by files that are compiled
// once per instruction set.
//
// A query row: for every four dimensions the word of the first and third, and that of the second
// and fourth, as the bytes of a word of K in the pages part; then the step of the values.
#ifndef TANDEM_KERNELS_CPU_ATTENTION_INT16_H_
#define TANDEM_KERNELS_CPU_ATTENTION_INT16_H_

#include "kernels/cpu/attention/ahead.h"
#include "kernels/cpu/attention/columns.h"
#include "kernels/cpu/attention/integers.h"
#include "kernels/cpu/attention/plan.h"
#include "kernels/cpu/attention/products.h"
#include "kernels/cpu/attention/unpack.h"
#include "kernels/cpu/vec.h"

namespace tandem::kernels::cpu::TANDEM_CPU_ISA {

inline constexpr uint32_t kBlockWords = kBlockValues / 2;

// Of queries and of weights, in steps.
inline constexpr float kLargest = 32767;

inline __m256i LoadWords(const void* words) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(words));
}
inline void StoreWords(void* words, __m256i v) {
  _mm256_storeu_si256(static_cast<__m256i*>(words), v);
}

// Four bytes of K of eight positions as two words: of bytes 0 and 2, and of 1 and 3.
template <int kHalf>
__m256i Widened(__m256i bytes) {
  return _mm256_srai_epi16(kHalf == 0 ? _mm256_slli_epi16(bytes, 8) : bytes, 8);
}

// K of 16 positions, in columns of the pages or as LoadK leaves it: words of four dimensions of a
// vector of positions, and scales of a block.
struct ByteColumnInPages {
  const unsigned char* fours;
  size_t stride;
  const KeyColumns* keys;
  int32_t position;

  template <int kHalf>
  __m256i Word(uint32_t four, int vec) const {
    return Widened<kHalf>(LoadWords(fours + four * stride + vec * 32));
  }
  Vec Scales(uint32_t block, int vec) const {
    return KeyScales(*keys, position + vec * kLanes, block);
  }
};
struct WordColumnOfTile {
  const float* words;
  const float* scales;

  template <int kHalf>
  __m256i Word(uint32_t four, int vec) const {
    return LoadWords(words + (2 * four + kHalf) * kTilePositions + vec * kLanes);
  }
  Vec Scales(uint32_t block, int vec) const {
    return Load(scales + block * kTilePositions + vec * kLanes);
  }
};
static_assert(kGroupPositions == 2 * kLanes);
inline ByteColumnInPages ColumnInPages(const KeyColumns& keys, int32_t position) {
  return {keys.words[position / kGroupPositions], keys.stride, &keys, position};
}

// 32 columns of V in the pages, of two positions at a time.
struct ByteColumns {
  const void* const* rows;
  uint32_t block;

  // Columns [column, column + 16).
  void Load(int32_t pair, uint32_t column, __m256i words[2]) const {
    const __m128i a = Bytes(2 * pair, column), b = Bytes(2 * pair + 1, column);
    words[0] = _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(a, b));
    words[1] = _mm256_cvtepi8_epi16(_mm_unpackhi_epi8(a, b));
  }

 private:
  __m128i Bytes(int32_t row, uint32_t column) const {
    const auto& values = static_cast<const tensor::BlockQ8_0*>(rows[row])[block].qs;
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(values + column));
  }
};
// The same as LoadV leaves them, words of a pair `stride` apart.
struct UnpackedColumns {
  const float* words;
  uint32_t stride;

  void Load(int32_t pair, uint32_t column, __m256i out[2]) const {
    const float* const at = words + static_cast<uint32_t>(pair) * stride + column;
    out[0] = LoadWords(at);
    out[1] = LoadWords(at + kLanes);
  }
};

// REQUIRES: Q8_0 pages that are not latent.
struct Int16Products {
  static void CopyQuery(const float* q, uint32_t dim, float* out) {
    const auto [step, reciprocal] = StepOfQuery(q, dim, kLargest);
    const Vec per_step = Set1(reciprocal);
    for (uint32_t d = 0; d < dim; d += 2 * kLanes, out += kLanes)
      StoreSteps(Load(q + d) * per_step, Load(q + d + kLanes) * per_step, out);
    *out = step;
  }

  // Words of (dim / 2, 64), then scales of (blocks, 64).
  static void LoadK(tensor::Type, const void* const rows[kTilePositions], uint32_t dim, float* out,
                    ReadAhead& ahead) {
    for (uint32_t b = 0; b < dim / kBlockValues; ++b) {
      LoadScales(rows, b, out + KWords(dim) + b * kTilePositions);
      for (int32_t i = 0; i < kTilePositions; i += kLanes) {
        Vec fours[kLanes];
        for (int j = 0; j < kLanes; ++j) {
          const auto& block = static_cast<const tensor::BlockQ8_0*>(rows[i + j])[b];
          fours[j] = LoadBytes(block.qs, nullptr);
        }
        Transpose(fours);
        float* line = out + b * kBlockWords * kTilePositions + i;
        for (int j = 0; j < kLanes; ++j, line += 2 * kTilePositions) {
          StoreWords(line, Widened<0>(_mm256_castps_si256(fours[j])));
          StoreWords(line + kTilePositions, Widened<1>(_mm256_castps_si256(fours[j])));
        }
        ahead.Fetch();
      }
    }
  }
  static uint32_t KWords(uint32_t dim) { return dim / 2 * kTilePositions; }
  static bool TakesWords(tensor::Type) { return true; }
  static void LoadColumns(tensor::Type, const KeyColumns& keys, uint32_t dim, float* out) {
    for (int32_t i = 0; i < kTilePositions; i += kLanes) {
      const ByteColumnInPages column = ColumnInPages(keys, i / kGroupPositions * kGroupPositions);
      const int vec = i % kGroupPositions / kLanes;
      float* line = out + i;
      for (uint32_t four = 0; four < dim / 4; ++four, line += 2 * kTilePositions) {
        StoreWords(line, column.Word<0>(four, vec));
        StoreWords(line + kTilePositions, column.Word<1>(four, vec));
      }
      for (uint32_t b = 0; b < dim / kBlockValues; ++b)
        Store(out + KWords(dim) + b * kTilePositions + i, column.Scales(b, vec));
    }
  }
  template <typename Visit>
  static void WithKeys(tensor::Type, const KeyColumns* columns, const float* tile, uint32_t dim,
                       Visit visit) {
    if (columns != nullptr) {
      return visit([columns](int32_t position) { return ColumnInPages(*columns, position); });
    }
    visit([=](int32_t position) {
      return WordColumnOfTile{tile + position, tile + KWords(dim) + position};
    });
  }

  // Words of (32, dim), then scales of (blocks, 64).
  static void LoadV(tensor::Type, const void* const rows[kTilePositions], uint32_t dim, float* out,
                    ReadAhead& ahead) {
    for (uint32_t b = 0; b < dim / kBlockValues; ++b)
      LoadScales(rows, b, out + VWords(dim) + b * kTilePositions);
    for (int32_t pair = 0; pair < kTilePositions / 2; ++pair) {
      for (uint32_t c = 0; c < dim; c += 2 * kLanes, out += 2 * kLanes) {
        __m256i words[2];
        ByteColumns{rows, c / kBlockValues}.Load(pair, c % kBlockValues, words);
        StoreWords(out, words[0]);
        StoreWords(out + kLanes, words[1]);
      }
      if (pair % 4 == 0) ahead.Fetch();
    }
  }
  static uint32_t VWords(uint32_t dim) { return dim * kTilePositions / 2; }

  static Vec Weigh(float* scores, Vec largest) { return FloatProducts::Weigh(scores, largest); }
  static void Order(float*, uint32_t) {}

 private:
  // 16 values in steps as eight words.
  static void StoreSteps(Vec a, Vec b, float* out) {
    const __m256i halves = _mm256_permute4x64_epi64(
        _mm256_packs_epi32(_mm256_cvtps_epi32(a), _mm256_cvtps_epi32(b)), 0xd8);
    const __m256i parted =
        _mm256_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15,  //
                         0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15);
    StoreWords(out, _mm256_shuffle_epi8(halves, parted));
  }
};

}  // namespace tandem::kernels::cpu::TANDEM_CPU_ISA

#endif  // TANDEM_KERNELS_CPU_ATTENTION_INT16_H_
