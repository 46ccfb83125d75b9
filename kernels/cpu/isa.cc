#include "kernels/cpu/isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

// Whether the processor has a feature beyond AVX2; a macro, as the compiler takes literals alone.
#if defined(TANDEM_SIMD_EMULATION)
#include "tools/simd_emulation/processor.h"
#define TANDEM_HAS(feature) simd_emulation::ProcessorHas(feature)
#elif defined(__x86_64__)
#define TANDEM_HAS(feature) (__builtin_cpu_init(), __builtin_cpu_supports(feature))
#else
#define TANDEM_HAS(feature) false
#endif

namespace tandem::kernels::cpu {
namespace {

void Need(bool present, const char* name, std::string* missing) {
  if (present) return;
  if (!missing->empty()) *missing += ", ";
  *missing += name;
}

}  // namespace

const char* Name(Isa isa) {
  switch (isa) {
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx2Vnni:
      return "avx2-vnni";
    case Isa::kAvx512:
      break;
  }
  return "avx512";
}

std::string MissingInstructions(Isa isa) {
  // __builtin_cpu_supports also asks whether the operating system saves the registers.
  std::string missing;
#if defined(__x86_64__)
  __builtin_cpu_init();
  Need(__builtin_cpu_supports("avx2"), "avx2", &missing);
  Need(__builtin_cpu_supports("fma"), "fma", &missing);
  Need(__builtin_cpu_supports("f16c"), "f16c", &missing);
  if (isa == Isa::kAvx2Vnni) Need(TANDEM_HAS("avxvnni"), "avxvnni", &missing);
  if (isa == Isa::kAvx512) {
    Need(TANDEM_HAS("avx512f"), "avx512f", &missing);
    Need(TANDEM_HAS("avx512bw"), "avx512bw", &missing);
    Need(TANDEM_HAS("avx512vl"), "avx512vl", &missing);
    Need(TANDEM_HAS("avx512dq"), "avx512dq", &missing);
  }
#else
  Need(false, Name(isa), &missing);
#endif
  return missing;
}

bool HasVnni() { return TANDEM_HAS("avx512vnni"); }

bool HasBf16() { return HasVnni() && TANDEM_HAS("avx512bf16"); }

bool HasFastBf16() {
#if defined(TANDEM_SIMD_EMULATION)
  return HasBf16();
#elif defined(__x86_64__)
  return HasBf16() && __builtin_cpu_is("amd");
#else
  return false;
#endif
}

bool HasByteProducts() { return HasVnni() && TANDEM_HAS("avx512vbmi"); }

bool FetchesFarToL1() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  unsigned eax, ebx, ecx, edx;
  if (!__builtin_cpu_is("amd") || !__get_cpuid(1, &eax, &ebx, &ecx, &edx)) return false;
  constexpr unsigned kBaseFamily = 0xf, kFamilyOfZen5 = 0x1a;
  return (eax >> 8 & 0xf) == kBaseFamily && kBaseFamily + (eax >> 20 & 0xff) >= kFamilyOfZen5;
#else
  return false;
#endif
}

}  // namespace tandem::kernels::cpu
