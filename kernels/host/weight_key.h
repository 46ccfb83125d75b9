// Ids ranked by weight as one descending integer: heavier first, then lower id. Always inlined: the
// loops of several instruction sets use it.
#ifndef TANDEM_KERNELS_HOST_WEIGHT_KEY_H_
#define TANDEM_KERNELS_HOST_WEIGHT_KEY_H_

#include <cstdint>

namespace tandem::kernels::host {

// Larger `bits` first, then lower id.
[[gnu::always_inline]] inline uint64_t KeyOf(uint32_t bits, uint32_t id) {
  return (uint64_t{bits} << 32) | (~id & 0xffffffffu);
}
// Weights are not negative, so their bits order as they do.
[[gnu::always_inline]] inline uint64_t WeightKey(float weight, uint32_t id) {
  return KeyOf(__builtin_bit_cast(uint32_t, weight), id);
}
[[gnu::always_inline]] inline float KeyWeight(uint64_t key) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(key >> 32));
}
[[gnu::always_inline]] inline uint32_t KeyId(uint64_t key) { return ~static_cast<uint32_t>(key); }

}  // namespace tandem::kernels::host

#endif  // TANDEM_KERNELS_HOST_WEIGHT_KEY_H_
