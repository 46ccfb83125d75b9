// Built with --config=simd_emulation: that the suites beside it run on the processor asked for.
#include <cstdlib>
#include <string>

#include "gtest/gtest.h"
#include "kernels/cpu/isa.h"

namespace tandem::kernels::cpu {
namespace {

bool IsLeftOut(const char* feature) {
  const char* without = std::getenv("TANDEM_EMULATE_WITHOUT");
  return without != nullptr && std::string(without).find(feature) != std::string::npos;
}

TEST(EmulatedProcessor, RunsEverySet) {
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx2Vnni, Isa::kAvx512}) {
    EXPECT_EQ(MissingInstructions(isa), "") << Name(isa);
  }
}

TEST(EmulatedProcessor, HasWhatIsNotLeftOut) {
  const bool vnni = !IsLeftOut("avx512vnni");
  EXPECT_EQ(HasVnni(), vnni);
  EXPECT_EQ(HasBf16(), vnni && !IsLeftOut("avx512bf16"));
  EXPECT_EQ(HasFastBf16(), HasBf16());
  EXPECT_EQ(HasByteProducts(), vnni && !IsLeftOut("avx512vbmi"));
}

// Else nothing above tells one processor from another.
TEST(EmulatedProcessor, KnowsWhatIsLeftOut) {
  const char* without = std::getenv("TANDEM_EMULATE_WITHOUT");
  if (without == nullptr || *without == '\0') return;
  EXPECT_TRUE(IsLeftOut("avx512vnni") || IsLeftOut("avx512bf16") || IsLeftOut("avx512vbmi"))
      << without;
}

}  // namespace
}  // namespace tandem::kernels::cpu
