#include "kernels/cuda/kernel_image.h"

#include <gtest/gtest.h>

#include <cstring>

namespace tandem::kernels::cuda {
namespace {

TEST(KernelImageTest, IsThereForTheEmulatedDevice) {
  EXPECT_EQ(CheckKernelImage(), absl::OkStatus());
}

TEST(KernelImageTest, OneThatIsMissingNamesTheDeviceAndTheBuild) {
  cudaDeviceProp device = {};
  std::strcpy(device.name, "A GPU");
  device.major = 8;
  device.minor = 9;
  const KernelImage image = {.error = cudaErrorNoKernelImageForDevice, .built_for = {900, 1200}};
  EXPECT_EQ(StatusOf(image, device),
            absl::UnavailableError(
                "device 'cuda': A GPU has compute capability 8.9, this build has kernels for 9.0, "
                "12.0 (cudaErrorNoKernelImageForDevice): build with --config=cuda, for all"));
}

}  // namespace
}  // namespace tandem::kernels::cuda
