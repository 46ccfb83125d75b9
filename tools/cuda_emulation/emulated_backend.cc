#include "tools/cuda_emulation/emulated_backend.h"

#include <utility>

#include "common/base/status.h"
#include "kernels/cuda/cuda_backend.h"
#include "tools/cuda_emulation/runtime.h"

namespace tandem::kernels::cuda {
namespace {

class EmulatedBackend : public CudaBackend, private HostStream {
 public:
  EmulatedBackend() : CudaBackend("cuda-emulated") {}

  HostStream* host_stream() override { return this; }
  kernels::DeviceStream* device_stream() override { return nullptr; }

  absl::Status Wait() override {
    const absl::Status waited = CudaBackend::Wait();
    const absl::Status work = std::exchange(host_work_, absl::OkStatus());
    return work.ok() ? waited : work;
  }

 private:
  // After a failure, the rest of the step is skipped.
  void Enqueue(std::function<absl::Status(Deadline)> work) override {
    if (stream().planning()) return;
    stream().Note(emulation::Enqueue(stream().handle(),
                                     [this, work = std::move(work)] {
                                       if (host_work_.ok()) host_work_ = work(deadline());
                                       return cudaSuccess;
                                     }),
                  "host work");
  }

  absl::Status host_work_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> MakeEmulatedBackend() {
  auto backend = std::make_unique<EmulatedBackend>();
  TANDEM_RETURN_IF_ERROR(backend->Open());
  return backend;
}

}  // namespace tandem::kernels::cuda
