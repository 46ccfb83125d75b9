#include "kernels/factory.h"
#include "tests/common/config/named.h"
#include "tests/kernels/backends.h"

namespace tandem::kernels {

std::unique_ptr<Backend> MakeOrDie(const BackendCase& c) {
  auto backend = MakeBackend({.cpu_kernels = testing::Named<config::CpuKernels>(c.kernels),
                              .threads = c.threads,
                              .repack_weights = c.repack});
  EXPECT_TRUE(backend.ok()) << backend.status();
  return std::move(backend).value();
}

std::vector<BackendCase> RunnableBackends() {
  std::vector<BackendCase> cases;
  for (const char* kernels : {"reference", "avx2", "avx2-vnni", "avx512"}) {
    if (!MakeBackend({.cpu_kernels = testing::Named<config::CpuKernels>(kernels), .threads = 1})
             .ok())
      continue;
    for (const int threads : {1, 2}) cases.push_back({kernels, threads});
    if (std::string(kernels) != "reference") {
      cases.push_back({.kernels = kernels, .threads = 2, .repack = false});
    }
  }
  return cases;
}

}  // namespace tandem::kernels
