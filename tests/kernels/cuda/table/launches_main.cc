// op_launches: encodes the table's ops at its real sizes on the emulated device, without running
// them, and prints what each launches, for tools/gpu/kernel_report.py. Lines of fields between
// tabs: `main` and its address, by which addresses are given names; `case`, op, shape, bytes and
// operations; after it, `launch`, the kernel's address, blocks, and bytes of shared memory.
#include <cstdio>
#include <string>

#include "tests/kernels/cuda/table/op_case.h"
#include "tests/kernels/cuda/table/op_table.h"
#include "tools/cuda_emulation/emulated_backend.h"
#include "tools/cuda_emulation/runtime.h"

int main() {
  namespace kernels = tandem::kernels;
  tandem::emulation::ObserveLaunches([](const void* kernel, const cudaLaunchConfig_t& config) {
    const size_t blocks = size_t{config.gridDim.x} * config.gridDim.y * config.gridDim.z;
    std::printf("launch\t%p\t%zu\t%zu\n", kernel, blocks, config.dynamicSmemBytes);
  });
  std::printf("main\t%p\n", reinterpret_cast<const void*>(&main));
  for (const kernels::OpCase& one : kernels::AllCases(kernels::TableSizes())) {
    std::printf("case\t%s\t%s\t%.0f\t%.0f\n", one.op.c_str(), one.shape.c_str(), one.bytes,
                one.flops);
    const auto encoded = kernels::EncodeOnly(one, &kernels::cuda::MakeEmulatedBackend);
    if (encoded.ok()) continue;
    std::fprintf(stderr, "op_launches: %s, %s: %s\n", one.op.c_str(), one.shape.c_str(),
                 std::string(encoded.message()).c_str());
    return 1;
  }
  return 0;
}
