#include "kernels/cuda/device_info.h"

#include <gtest/gtest.h>

#include "absl/status/status.h"

namespace tandem::kernels {
namespace {

TEST(DeviceInfo, FormatsOneLinePerDeviceAndOneOfVersions) {
  const CudaInfo info{
      .driver_version = 13010,
      .runtime_version = 13000,
      .cublaslt_version = 130002,
      .devices = {{.name = "A", .major = 9, .minor = 0, .memory_bytes = size_t{80} << 30},
                  {.name = "B", .major = 12, .minor = 1, .memory_bytes = size_t{3} << 29}}};
  EXPECT_EQ(FormatCuda(info),
            "device 0: A, compute capability 9.0, 80.0 GiB\n"
            "device 1: B, compute capability 12.1, 1.5 GiB\n"
            "driver for CUDA 13.1, runtime 13.0, cuBLASLt 130002\n");
}

TEST(DeviceInfo, ADeviceMustBeThereAndNewEnough) {
  const CudaInfo info{.devices = {{.name = "New", .major = 9, .minor = 0, .memory_bytes = 1},
                                  {.name = "Old", .major = 7, .minor = 5, .memory_bytes = 1}}};
  EXPECT_TRUE(CheckCudaDevice(info, 0).ok());
  EXPECT_EQ(CheckCudaDevice(info, 1),
            absl::UnavailableError("device 'cuda': GPU 1 (Old) has compute capability 7.5, needed "
                                   "is 8.0 or newer"));
  EXPECT_EQ(CheckCudaDevice(info, 2),
            absl::UnavailableError("device 'cuda': this rank needs GPU 2, but this process sees "
                                   "only 2"));
  EXPECT_FALSE(CheckCudaDevice(info, -1).ok());
}

// On a machine with a GPU every device is described; elsewhere the reason is one line.
TEST(DeviceInfo, QueryDescribesDevicesOrFailsWithAReason) {
  absl::StatusOr<CudaInfo> info = QueryCuda();
  if (!info.ok()) {
    EXPECT_EQ(info.status().code(), absl::StatusCode::kUnavailable) << info.status();
    EXPECT_FALSE(info.status().message().empty());
    EXPECT_EQ(info.status().message().find('\n'), absl::string_view::npos);
    return;
  }
  ASSERT_FALSE(info->devices.empty());
  for (const CudaDevice& device : info->devices) {
    EXPECT_FALSE(device.name.empty());
    EXPECT_GT(device.memory_bytes, 0u);
    EXPECT_GE(device.major, 5);
  }
  EXPECT_GE(info->driver_version, info->runtime_version / 1000 * 1000);
  EXPECT_GT(info->cublaslt_version, 0u);
}

}  // namespace
}  // namespace tandem::kernels
