#include "kernels/factory.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/backend.h"
#include "kernels/cpu/isa.h"
#include "kernels/reference/backend.h"

namespace tandem::kernels {
namespace {

constexpr int kMaxThreads = 1024;

absl::StatusOr<std::unique_ptr<Backend>> MakeCpu(cpu::Isa isa, uint32_t threads) {
  if (const std::string missing = cpu::MissingInstructions(isa); !missing.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "cpu kernels '", cpu::Name(isa), "' need instructions that this machine lacks: ", missing));
  }
  return cpu::MakeCpuBackend(isa, threads);
}

DeviceMaker& CudaMaker() {
  static auto* const maker = new DeviceMaker();
  return *maker;
}

}  // namespace

void RegisterCuda(DeviceMaker maker) { CudaMaker() = std::move(maker); }

absl::StatusOr<std::unique_ptr<Backend>> MakeBackend(const BackendOptions& options) {
  if (options.device == "cuda") {
    if (CudaMaker() != nullptr) return CudaMaker()(options);
    return absl::UnavailableError("device 'cuda': this program was built without CUDA");
  }
  if (options.device != "cpu") {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown device '", options.device, "'; known: cpu, cuda"));
  }
  if (options.threads < 1 || options.threads > kMaxThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("threads per worker must be 1 to ", kMaxThreads, ", not ", options.threads));
  }
  const auto threads = static_cast<uint32_t>(options.threads);
  const std::string& kernels = options.cpu_kernels;
  if (kernels == "reference") return reference::MakeReferenceBackend(threads);
  if (kernels == "avx2") return MakeCpu(cpu::Isa::kAvx2, threads);
  if (kernels == "avx512") return MakeCpu(cpu::Isa::kAvx512, threads);
  if (kernels == "auto") {
    for (const cpu::Isa isa : {cpu::Isa::kAvx512, cpu::Isa::kAvx2}) {
      if (cpu::MissingInstructions(isa).empty()) return MakeCpu(isa, threads);
    }
    return reference::MakeReferenceBackend(threads);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown cpu kernels '", kernels, "'; known: auto, reference, avx2, avx512"));
}

}  // namespace tandem::kernels
