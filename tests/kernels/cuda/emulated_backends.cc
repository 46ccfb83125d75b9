#include "tests/kernels/backends.h"
#include "tests/kernels/cuda/bits_backend.h"
#include "tools/cuda_emulation/emulated_backend.h"
#include "tools/cuda_emulation/execution.h"

namespace tandem::kernels {

std::unique_ptr<Backend> MakeOrDie(const BackendCase& c) {
  emulation::SetOrder(c.threads == 1 ? emulation::Order::kForwards : emulation::Order::kBackwards);
  auto backend = cuda::BitsWanted() ? cuda::MakeBitsBackend() : cuda::MakeEmulatedBackend();
  EXPECT_TRUE(backend.ok()) << backend.status();
  return std::move(backend).value();
}

std::vector<BackendCase> RunnableBackends() { return {{"emulated", 1}, {"emulated", 2}}; }

}  // namespace tandem::kernels
