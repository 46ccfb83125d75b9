// device_info: prints the CUDA devices of this machine; one line on stderr and exit code 1 if none.

#include <cstdio>

#include "kernels/cuda/device_info.h"

int main() {
  absl::StatusOr<tandem::kernels::CudaInfo> info = tandem::kernels::QueryCuda();
  if (!info.ok()) {
    std::fprintf(stderr, "device_info: no CUDA device: %s\n",
                 std::string(info.status().message()).c_str());
    return 1;
  }
  std::fputs(tandem::kernels::FormatCuda(*info).c_str(), stdout);
  return 0;
}
