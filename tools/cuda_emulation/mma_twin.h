// Scalar emulation of kernels/cuda/device/mma.h: lanes exchange their fragments, and each computes
// its own sums.
#ifndef TANDEM_TOOLS_CUDA_EMULATION_MMA_TWIN_H_
#define TANDEM_TOOLS_CUDA_EMULATION_MMA_TWIN_H_

#include <cstdint>

#include "common/tensor/f16.h"
#include "tools/cuda_emulation/execution.h"

namespace tandem::emulation {

template <float (*kToFloat)(uint16_t)>
void Mma(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  float whole_a[16][16];  // [m][k]
  float whole_b[16][8];   // [k][n]
  auto low = [](uint32_t word) { return kToFloat(static_cast<uint16_t>(word)); };
  auto high = [](uint32_t word) { return kToFloat(static_cast<uint16_t>(word >> 16)); };
  for (uint32_t reg = 0; reg < 4; ++reg) {
    const auto given = ExchangeInWarp(a[reg]);
    for (uint32_t lane = 0; lane < kWarp; ++lane) {
      const auto word = static_cast<uint32_t>(given[lane]);
      const uint32_t m = lane / 4 + reg % 2 * 8, k = lane % 4 * 2 + reg / 2 * 8;
      whole_a[m][k] = low(word);
      whole_a[m][k + 1] = high(word);
    }
  }
  for (uint32_t reg = 0; reg < 2; ++reg) {
    const auto given = ExchangeInWarp(b[reg]);
    for (uint32_t lane = 0; lane < kWarp; ++lane) {
      const auto word = static_cast<uint32_t>(given[lane]);
      const uint32_t n = lane / 4, k = lane % 4 * 2 + reg * 8;
      whole_b[k][n] = low(word);
      whole_b[k + 1][n] = high(word);
    }
  }
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t m = Lane() / 4 + i / 2 * 8, n = Lane() % 4 * 2 + i % 2;
    for (uint32_t k = 0; k < 16; ++k) c[i] += whole_a[m][k] * whole_b[k][n];
  }
}

inline void MmaBf16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  Mma<tensor::Bf16ToFloat>(c, a, b);
}
inline void MmaF16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  Mma<tensor::HalfToFloat>(c, a, b);
}

// The product of 16 columns of signed bytes, added to d.
inline void AddInt8(int (&d)[4], uint32_t a_low, uint32_t a_high, uint32_t b) {
  const auto byte = [](uint64_t word, uint32_t i) {
    return static_cast<int>(static_cast<int8_t>(word >> (8 * i)));
  };
  int whole_a[16][16];  // [m][k]
  int whole_b[16][8];   // [k][n]
  const auto low = ExchangeInWarp(a_low), high = ExchangeInWarp(a_high), given = ExchangeInWarp(b);
  for (uint32_t lane = 0; lane < kWarp; ++lane) {
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t k = lane % 4 * 4 + i;
      whole_a[lane / 4][k] = byte(low[lane], i);
      whole_a[lane / 4 + 8][k] = byte(high[lane], i);
      whole_b[k][lane / 4] = byte(given[lane], i);
    }
  }
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t m = Lane() / 4 + i / 2 * 8, n = Lane() % 4 * 2 + i % 2;
    for (uint32_t k = 0; k < 16; ++k) d[i] += whole_a[m][k] * whole_b[k][n];
  }
}

inline void MmaInt8Half(int (&d)[4], uint32_t a_low, uint32_t a_high, uint32_t b, int c) {
  for (int& value : d) value = c;
  AddInt8(d, a_low, a_high, b);
}
inline void MmaInt8(int (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], int c) {
  MmaInt8Half(d, a[0], a[1], b[0], c);
  AddInt8(d, a[2], a[3], b[1]);
}

}  // namespace tandem::emulation

#endif  // TANDEM_TOOLS_CUDA_EMULATION_MMA_TWIN_H_
