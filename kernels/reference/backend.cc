#include "kernels/reference/backend.h"

#include "common/tensor/type.h"
#include "kernels/host/host_backend.h"
#include "kernels/reference/ops.h"

namespace tandem::kernels::reference {
namespace {

class ReferenceBackend final : public host::HostBackend {
 public:
  ReferenceBackend(uint32_t threads, const CpuSet& cpus)
      : HostBackend("reference", threads, cpus) {}

  void Encode(const Op& op) override { reference::Encode(list(), op); }

 private:
  bool CanCompute(tensor::Type type) const override { return tensor::Traits(type).supported; }
};

}  // namespace

std::unique_ptr<Backend> MakeReferenceBackend(uint32_t threads, const CpuSet& cpus) {
  return std::make_unique<ReferenceBackend>(threads, cpus);
}

}  // namespace tandem::kernels::reference
