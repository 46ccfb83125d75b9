// Words of a table by index, a load for each: gathers take longer.
//
// Include only from files that are compiled for AVX2 or AVX-512.
#ifndef TANDEM_KERNELS_CPU_MATMUL_LOOK_UP_H_
#define TANDEM_KERNELS_CPU_MATMUL_LOOK_UP_H_

#if defined(__AVX2__)

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tandem::kernels::cpu {

// Eight indices, two to a register: moves from vectors are dear.
struct EightIndices {
  [[gnu::always_inline]] explicit EightIndices(__m256i index)
      : two{Pair(_mm256_castsi256_si128(index), 0), Pair(_mm256_castsi256_si128(index), 1),
            Pair(_mm256_extracti128_si256(index, 1), 0),
            Pair(_mm256_extracti128_si256(index, 1), 1)} {}

  [[gnu::always_inline]] size_t operator[](int i) const {
    return i % 2 == 0 ? two[i / 2] & 0xffffffff : two[i / 2] >> 32;
  }

  uint64_t two[4];

 private:
  [[gnu::always_inline]] static uint64_t Pair(__m128i half, int at) {
    return static_cast<uint64_t>(at == 0 ? _mm_cvtsi128_si64(half) : _mm_extract_epi64(half, 1));
  }
};

// words[index[i]] in lane i of 8.
[[gnu::always_inline]] inline __m256i LookUpWords(const uint32_t* words,
                                                  const EightIndices& index) {
  const auto at = [&](int i) __attribute__((always_inline)) {
    return static_cast<int>(words[index[i]]);
  };
  return _mm256_setr_epi32(at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7));
}

// Words 2 * index[i] and 2 * index[i] + 1 side by side, for i of `first`, `first` + 1, `first` + 4
// and `first` + 5.
[[gnu::always_inline]] inline __m256i LookUpPairs(const uint32_t* words, const EightIndices& index,
                                                  int first) {
  const auto at = [&](int i) __attribute__((always_inline)) {
    long long pair;
    std::memcpy(&pair, words + 2 * index[first + i], sizeof(pair));
    return pair;
  };
  return _mm256_setr_epi64x(at(0), at(1), at(4), at(5));
}

}  // namespace tandem::kernels::cpu

#endif

#endif  // TANDEM_KERNELS_CPU_MATMUL_LOOK_UP_H_
