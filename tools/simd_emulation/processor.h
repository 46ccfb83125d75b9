// The processor that is emulated: AVX2's, with all of AVX-512 and AVX-VNNI.
#ifndef TANDEM_TOOLS_SIMD_EMULATION_PROCESSOR_H_
#define TANDEM_TOOLS_SIMD_EMULATION_PROCESSOR_H_

#include <cstdlib>
#include <cstring>

namespace tandem::simd_emulation {

// Whether it has a feature, such as "avx512vbmi": not if the environment's
// TANDEM_EMULATE_WITHOUT names it ("avx512bf16,avx512vbmi").
inline bool ProcessorHas(const char* feature) {
  const char* without = std::getenv("TANDEM_EMULATE_WITHOUT");
  return without == nullptr || std::strstr(without, feature) == nullptr;
}

// Traps where a processor without them would.
[[maybe_unused]] static void NeedVnni() {
  static const bool has = ProcessorHas("avx512vnni");
  if (!has) __builtin_trap();
}
[[maybe_unused]] static void NeedVbmi() {
  static const bool has = ProcessorHas("avx512vbmi");
  if (!has) __builtin_trap();
}
[[maybe_unused]] static void NeedBf16() {
  static const bool has = ProcessorHas("avx512bf16");
  if (!has) __builtin_trap();
}

}  // namespace tandem::simd_emulation

#endif  // TANDEM_TOOLS_SIMD_EMULATION_PROCESSOR_H_
