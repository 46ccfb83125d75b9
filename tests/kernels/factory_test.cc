#include "kernels/factory.h"

#include <gtest/gtest.h>

#include "kernels/cpu/isa.h"
#include "tests/common/config/named.h"

namespace tandem::kernels {
namespace {

absl::StatusCode Code(const config::DeviceConfig& config) {
  return MakeBackend(config).status().code();
}

TEST(FactoryTest, MakesWhatIsAskedFor) {
  const auto reference = MakeBackend({.cpu_kernels = config::CpuKernels::kReference, .threads = 2});
  ASSERT_TRUE(reference.ok());
  EXPECT_EQ((*reference)->name(), "reference");
  for (const cpu::Isa isa : {cpu::Isa::kAvx2, cpu::Isa::kAvx2Vnni, cpu::Isa::kAvx512}) {
    const auto backend = MakeBackend(
        {.cpu_kernels = testing::Named<config::CpuKernels>(cpu::Name(isa)), .threads = 1});
    const std::string missing = cpu::MissingInstructions(isa);
    if (missing.empty()) {
      ASSERT_TRUE(backend.ok()) << backend.status();
      EXPECT_EQ((*backend)->name(), std::string("cpu-") + cpu::Name(isa));
    } else {
      EXPECT_EQ(backend.status().code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_NE(backend.status().message().find(missing), std::string::npos);
    }
  }
}

TEST(FactoryTest, AutoTakesTheWidestThatRuns) {
  const auto backend = MakeBackend({.threads = 1});
  ASSERT_TRUE(backend.ok());
  if (cpu::MissingInstructions(cpu::Isa::kAvx512).empty()) {
    EXPECT_EQ((*backend)->name(), "cpu-avx512");
  } else if (cpu::MissingInstructions(cpu::Isa::kAvx2Vnni).empty()) {
    EXPECT_EQ((*backend)->name(), "cpu-avx2-vnni");
  } else if (cpu::MissingInstructions(cpu::Isa::kAvx2).empty()) {
    EXPECT_EQ((*backend)->name(), "cpu-avx2");
  } else {
    EXPECT_EQ((*backend)->name(), "reference");
  }
}

TEST(FactoryTest, TheCallersThreadRunsOnTheFirstOfTheCpus) {
  const CpuSet all = UsableCpus();
  for (const config::CpuKernels kernels :
       {config::CpuKernels::kAuto, config::CpuKernels::kReference}) {
    const auto backend = MakeBackend({.cpu_kernels = kernels, .threads = 1}, 0, {all.back(), 5000});
    ASSERT_TRUE(backend.ok()) << backend.status();
    EXPECT_EQ(UsableCpus(), CpuSet{all.back()});
    ASSERT_TRUE(RestrictThread(all).ok());
  }
}

TEST(FactoryTest, RefusesInOneLine) {
  EXPECT_EQ(Code({.device = config::Device::kCuda}), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Code({.threads = 0}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Code({.threads = 100000}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(MakeBackend({.threads = 3}, 0, {0, 1}).status().message(),
            "3 threads per worker need as many CPUs, there are 2: 0-1");
  const auto status = MakeBackend({.device = config::Device::kCuda}).status();
  EXPECT_NE(status.message().find("cuda"), absl::string_view::npos);
  EXPECT_EQ(status.message().find('\n'), absl::string_view::npos);
}

}  // namespace
}  // namespace tandem::kernels
