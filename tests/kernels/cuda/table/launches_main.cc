// op_launches: encodes the table's ops at its real sizes on the emulated device, without running
// them, and prints every kernel's address with the shared memory that its launch asks for. First
// the address of main, from which tools/gpu/kernel_report.py finds names.
#include <cstdio>
#include <set>
#include <string>
#include <utility>

#include "tests/kernels/cuda/table/op_case.h"
#include "tests/kernels/cuda/table/op_table.h"
#include "tools/cuda_emulation/emulated_backend.h"
#include "tools/cuda_emulation/runtime.h"

int main() {
  namespace kernels = tandem::kernels;
  std::set<std::pair<const void*, size_t>> launches;
  tandem::emulation::ObserveLaunches([&](const void* kernel, const cudaLaunchConfig_t& config) {
    launches.emplace(kernel, config.dynamicSmemBytes);
  });
  for (const kernels::OpCase& one : kernels::AllCases(kernels::TableSizes())) {
    const auto encoded = kernels::EncodeOnly(one, &kernels::cuda::MakeEmulatedBackend);
    if (encoded.ok()) continue;
    std::fprintf(stderr, "op_launches: %s, %s: %s\n", one.op.c_str(), one.shape.c_str(),
                 std::string(encoded.message()).c_str());
    return 1;
  }
  std::printf("%p\n", reinterpret_cast<const void*>(&main));
  for (const auto& [kernel, bytes] : launches) std::printf("%p %zu\n", kernel, bytes);
  return 0;
}
