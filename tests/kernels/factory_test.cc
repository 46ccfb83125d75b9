#include "kernels/factory.h"

#include <gtest/gtest.h>

#include "kernels/cpu/isa.h"

namespace tandem::kernels {
namespace {

absl::StatusCode Code(const BackendOptions& options) {
  return MakeBackend(options).status().code();
}

TEST(FactoryTest, MakesWhatIsAskedFor) {
  const auto reference = MakeBackend({.cpu_kernels = "reference", .threads = 2});
  ASSERT_TRUE(reference.ok());
  EXPECT_EQ((*reference)->name(), "reference");
  for (const cpu::Isa isa : {cpu::Isa::kAvx2, cpu::Isa::kAvx512}) {
    const auto backend = MakeBackend({.cpu_kernels = cpu::Name(isa)});
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
  const auto backend = MakeBackend({});
  ASSERT_TRUE(backend.ok());
  if (cpu::MissingInstructions(cpu::Isa::kAvx512).empty()) {
    EXPECT_EQ((*backend)->name(), "cpu-avx512");
  } else if (cpu::MissingInstructions(cpu::Isa::kAvx2).empty()) {
    EXPECT_EQ((*backend)->name(), "cpu-avx2");
  } else {
    EXPECT_EQ((*backend)->name(), "reference");
  }
}

TEST(FactoryTest, RefusesInOneLine) {
  EXPECT_EQ(Code({.device = "cuda"}), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Code({.device = "tpu"}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Code({.cpu_kernels = "sse"}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Code({.cpu_kernels = ""}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Code({.threads = 0}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Code({.threads = 100000}), absl::StatusCode::kInvalidArgument);
  for (const char* device : {"cuda", "tpu"}) {
    const auto status = MakeBackend({.device = device}).status();
    EXPECT_NE(status.message().find(device), std::string::npos);
    EXPECT_EQ(status.message().find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace tandem::kernels
