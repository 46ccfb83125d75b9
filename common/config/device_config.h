// DeviceConfig: what a worker computes on.
#ifndef TANDEM_COMMON_CONFIG_DEVICE_CONFIG_H_
#define TANDEM_COMMON_CONFIG_DEVICE_CONFIG_H_

#include <cstdint>
#include <utility>

#include "common/config/field.h"

namespace tandem::config {

enum class Device { kCpu, kCuda };
template <>
struct EnumNames<Device> {
  static constexpr std::pair<Device, const char*> kNames[] = {{Device::kCpu, "cpu"},
                                                              {Device::kCuda, "cuda"}};
};

enum class CpuKernels { kAuto, kReference, kAvx2, kAvx2Vnni, kAvx512 };
template <>
struct EnumNames<CpuKernels> {
  static constexpr std::pair<CpuKernels, const char*> kNames[] = {
      {CpuKernels::kAuto, "auto"},
      {CpuKernels::kReference, "reference"},
      {CpuKernels::kAvx2, "avx2"},
      {CpuKernels::kAvx2Vnni, "avx2-vnni"},
      {CpuKernels::kAvx512, "avx512"}};
};

inline constexpr int32_t kMostThreadsPerWorker = 1024;

struct DeviceConfig {
  Device device = Device::kCpu;
  CpuKernels cpu_kernels = CpuKernels::kAuto;
  int32_t threads = 0;  // per worker, including its main thread; 0: cores / ranks
  bool repack_weights = true;
  double gpu_memory_utilization = 0.9;
  bool enforce_eager = false;
  bool strict = true;

  // Whether workers hold the weights in memory of their own, beside the mapped file.
  bool copies_weights() const {
    return device == Device::kCpu && repack_weights && cpu_kernels != CpuKernels::kReference;
  }

  void ForEach(FieldList& visit) {
    visit.BeginSection("Device");
    visit(device, {.flag = "--device", .help = "cpu, or cuda: one GPU per worker", .reload = true});
    visit(cpu_kernels, {.flag = "--cpu-kernels",
                        .help = "auto: the widest instructions that the machine has",
                        .reload = true});
    visit(threads, {.flag = "--threads-per-worker",
                    .help = "0: cores / ranks, or the CPUs of --worker-cpus",
                    .least = 0,
                    .most = kMostThreadsPerWorker,
                    .reload = true});
    visit(repack_weights,
          {.flag = "--repack-weights",
           .help = "CPU workers with SIMD kernels copy the weights to memory in the order that "
                   "kernels read them (on by default); without, they compute on the mapped file, "
                   "which is slower but needs little memory of its own",
           .reload = true});
    visit(gpu_memory_utilization,
          {.flag = "--gpu-memory-utilization",
           .help =
               "part of each GPU's memory that is used; where other processes use some of it too, "
               "the rest, up to a tenth of the GPU, still stays free; what the model leaves is KV "
               "cache",
           .least = 0.01,
           .most = 1});
    visit(enforce_eager,
          {.flag = "--enforce-eager", .help = "no CUDA graphs: every decode step is encoded"});
    visit(strict, {.flag = "--strict",
                   .help = "a call that blocks a worker between encoding a step and waiting for it "
                           "fails the step (on by default); without, it is logged"});
  }
};

}  // namespace tandem::config

#endif  // TANDEM_COMMON_CONFIG_DEVICE_CONFIG_H_
