#include <cstdlib>

#include "kernels/cuda/backend.h"
#include "kernels/cuda/device_info.h"
#include "tests/kernels/backends.h"
#include "tests/kernels/cuda/bits_backend.h"

namespace tandem::kernels {
namespace {

// Without a GPU every test of the program is skipped, with the reason.
class NeedsGpu : public testing::Environment {
 public:
  void SetUp() override {
    const auto info = QueryCuda();
    if (!info.ok()) GTEST_SKIP() << "no GPU: " << info.status().message();
  }
};
const auto* const needs_gpu = testing::AddGlobalTestEnvironment(new NeedsGpu);

}  // namespace

std::unique_ptr<Backend> MakeOrDie(const BackendCase&) {
  auto backend = cuda::MakeCudaBackend(0);
  if (backend.ok() && cuda::BitsWanted()) backend = cuda::MakeBitsBackend();
  EXPECT_TRUE(backend.ok()) << backend.status();
  return std::move(backend).value();
}

// TANDEM_TEST_SMALL: small shapes, for runs under compute-sanitizer.
std::vector<BackendCase> RunnableBackends() {
  return {{"gpu", 1, std::getenv("TANDEM_TEST_SMALL") != nullptr}};
}

}  // namespace tandem::kernels
