#include "kernels/reference/backend.h"

#include "common/tensor/type.h"
#include "kernels/host/host_backend.h"
#include "kernels/reference/ops.h"

namespace tandem::kernels::reference {
namespace {

class ReferenceBackend final : public host::HostBackend {
 public:
  explicit ReferenceBackend(uint32_t threads) : HostBackend("reference", threads) {}

  void RmsNorm(const RmsNormParams& params) override { EncodeRmsNorm(list(), params); }
  void MatMul(const MatMulParams& params) override { EncodeMatMul(list(), params); }
  void ExpertMatMul(const ExpertMatMulParams& params) override {
    EncodeExpertMatMul(list(), params);
  }
  void HeadMatMul(const HeadMatMulParams& params) override { EncodeHeadMatMul(list(), params); }
  void RopeWriteKv(const RopeWriteKvParams& params) override { EncodeRopeWriteKv(list(), params); }
  void Attention(const AttentionParams& params) override { EncodeAttention(list(), params); }
  void Activate(const ActivateParams& params) override { EncodeActivate(list(), params); }

 private:
  bool CanCompute(tensor::Type type) const override { return tensor::Traits(type).supported; }
};

}  // namespace

std::unique_ptr<Backend> MakeReferenceBackend(uint32_t threads) {
  return std::make_unique<ReferenceBackend>(threads);
}

}  // namespace tandem::kernels::reference
