// The order in which elements are selected: larger bits first, then lower id. An element's place in
// it is one integer, its key, which is looked for digit by digit (device/select.h).
#ifndef TANDEM_KERNELS_CUDA_DEVICE_SELECT_KEY_H_
#define TANDEM_KERNELS_CUDA_DEVICE_SELECT_KEY_H_

#include <cuda_runtime.h>

#include <cstdint>

namespace tandem::kernels::cuda {

inline constexpr uint32_t kSelectIdBits = 22;
inline constexpr uint32_t kMaxSelectIds = 1u << kSelectIdBits;
// Sums of this many half significands fit in 32 bits.
inline constexpr uint32_t kMaxSelectVocabulary = 1u << 20;

__device__ inline uint64_t SelectKey(uint32_t bits, uint32_t id) {
  return (static_cast<uint64_t>(bits) << kSelectIdBits) | (kMaxSelectIds - 1 - id);
}
__device__ inline uint32_t SelectedBits(uint64_t key) {
  return static_cast<uint32_t>(key >> kSelectIdBits);
}
__device__ inline uint32_t SelectedId(uint64_t key) {
  return kMaxSelectIds - 1 - (static_cast<uint32_t>(key) & (kMaxSelectIds - 1));
}

// Whether an element's key is at least `key`, without a number of 64 bits for each element.
__device__ __forceinline__ bool IsAtLeast(float value, uint32_t id, uint64_t key) {
  const uint32_t bits = __float_as_uint(value), least = SelectedBits(key);
  return bits > least || (bits == least && id <= SelectedId(key));
}

// A digit of keys, the first ones from the bits, the last ones from the id.
struct SelectDigit {
  uint32_t shift;
  uint32_t width;
};
inline constexpr uint32_t kFirstDigitShift = 21;  // of the bits
__device__ inline SelectDigit DigitOf(uint32_t level) {
  if (level == 0) return {kSelectIdBits + kFirstDigitShift, 11};
  if (level == 1) return {kSelectIdBits + 10, 11};
  if (level == 2) return {kSelectIdBits, 10};
  if (level == 3) return {11, 11};
  return {0, 11};
}
inline constexpr uint32_t kSelectLevels = 5;
inline constexpr uint32_t kSelectBins = 2048;

// A float's significand, with its leading one, in halves.
__device__ inline uint32_t SignificandOf(uint32_t bits) {
  return (bits & 0x7fffffu) | (bits >> 23 != 0 ? 0x800000u : 0u);
}
__device__ inline uint32_t SignificandLow(uint32_t bits) { return SignificandOf(bits) & 0xfffu; }
__device__ inline uint32_t SignificandHigh(uint32_t bits) { return SignificandOf(bits) >> 12; }

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_DEVICE_SELECT_KEY_H_
