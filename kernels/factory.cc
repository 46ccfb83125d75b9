#include "kernels/factory.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/backend.h"
#include "kernels/cpu/isa.h"
#include "kernels/reference/backend.h"

namespace tandem::kernels {
namespace {

absl::StatusOr<std::unique_ptr<Backend>> MakeCpu(cpu::Isa isa, const config::DeviceConfig& config,
                                                 const CpuSet& cpus) {
  if (const std::string missing = cpu::MissingInstructions(isa); !missing.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "cpu kernels '", cpu::Name(isa), "' need instructions that this machine lacks: ", missing));
  }
  return cpu::MakeCpuBackend(isa, static_cast<uint32_t>(config.threads), config.repack_weights,
                             cpus);
}

DeviceMaker& CudaMaker() {
  static auto* const maker = new DeviceMaker();
  return *maker;
}

}  // namespace

void RegisterCuda(DeviceMaker maker) { CudaMaker() = std::move(maker); }

absl::StatusOr<std::unique_ptr<Backend>> MakeBackend(const config::DeviceConfig& config,
                                                     int device_index, const CpuSet& cpus) {
  if (config.device == config::Device::kCuda) {
    if (CudaMaker() != nullptr) return CudaMaker()(device_index);
    return absl::UnavailableError("device 'cuda': this program was built without CUDA");
  }
  if (config.threads < 1 || config.threads > config::kMostThreadsPerWorker) {
    return absl::InvalidArgumentError(absl::StrCat("threads per worker must be 1 to ",
                                                   config::kMostThreadsPerWorker, ", not ",
                                                   config.threads));
  }
  if (!cpus.empty() && static_cast<int>(cpus.size()) < config.threads) {
    return absl::InvalidArgumentError(
        absl::StrCat(config.threads, " threads per worker need as many CPUs, there are ",
                     cpus.size(), ": ", CpuSetText(cpus)));
  }
  switch (config.cpu_kernels) {
    case config::CpuKernels::kAvx2:
      return MakeCpu(cpu::Isa::kAvx2, config, cpus);
    case config::CpuKernels::kAvx2Vnni:
      return MakeCpu(cpu::Isa::kAvx2Vnni, config, cpus);
    case config::CpuKernels::kAvx512:
      return MakeCpu(cpu::Isa::kAvx512, config, cpus);
    case config::CpuKernels::kAuto:
      for (const cpu::Isa isa : {cpu::Isa::kAvx512, cpu::Isa::kAvx2Vnni, cpu::Isa::kAvx2}) {
        if (!cpu::MissingInstructions(isa).empty()) continue;
        return MakeCpu(isa, config, cpus);
      }
      break;
    case config::CpuKernels::kReference:
      break;
  }
  return reference::MakeReferenceBackend(static_cast<uint32_t>(config.threads), cpus);
}

}  // namespace tandem::kernels
