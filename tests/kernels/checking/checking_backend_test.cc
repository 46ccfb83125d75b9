#include "kernels/checking/checking_backend.h"

#include <cmath>

#include "common/base/step_guard.h"
#include "kernels/host/host_backend.h"
#include "kernels/reference/backend.h"
#include "kernels/reference/ops.h"
#include "tests/kernels/backends.h"

namespace tandem::kernels::checking {
namespace {

// The reference with one wrong op: Activate leaves the gate's curve out in one column.
class WrongBackend final : public host::HostBackend {
 public:
  WrongBackend() : HostBackend("wrong", 1) {}
  void RmsNorm(const RmsNormParams& p) override { reference::EncodeRmsNorm(list(), p); }
  void MatMul(const MatMulParams& p) override { reference::EncodeMatMul(list(), p); }
  void RopeWriteKv(const RopeWriteKvParams& p) override { reference::EncodeRopeWriteKv(list(), p); }
  void Attention(const AttentionParams& p) override { reference::EncodeAttention(list(), p); }
  void ExpertMatMul(const ExpertMatMulParams& p) override {
    reference::EncodeExpertMatMul(list(), p);
  }
  void HeadMatMul(const HeadMatMulParams& p) override { reference::EncodeHeadMatMul(list(), p); }
  void Activate(const ActivateParams& p) override {
    reference::EncodeActivate(list(), p);
    list().Add(
        "wrong", 1,
        +[](const ActivateParams& params, const host::TaskContext&) { params.out[5] += 0.01f; }, p);
  }

 private:
  bool CanCompute(tensor::Type) const override { return true; }
};

// One small layer's worth of ops on device memory; the status of the step.
class CheckingTest : public testing::Test {
 protected:
  static constexpr uint32_t kTokens = 3, kDim = 32;

  void Make(std::unique_ptr<Backend> subject) {
    backend_ = MakeCheckingBackend(std::move(subject), reference::MakeReferenceBackend(1));
  }

  float* Room(size_t n) {
    buffers_.push_back(backend_->Allocate(n * 4).value());
    return reinterpret_cast<float*>(buffers_.back().data());
  }

  absl::Status RunLayer() {
    Random random(1);
    const auto x = random.Floats(kTokens * kDim), norm = random.Floats(kDim),
               table = random.Floats(kDim * kDim);
    const Weight weight =
        backend_->PlaceWeight({tensor::Type::kF32, table.data(), kDim, kDim, kDim * 4, 0, kDim})
            .value();
    float* const x_device = Room(x.size());
    float* const norm_device = Room(kDim);
    float* const normed = Room(x.size());
    float* const y = Room(x.size());
    float* const gated = Room(x.size());
    result_.assign(x.size(), 0.0f);
    const auto encode = [&](Backend& b) {
      b.Upload(x_device, x.data(), x.size() * 4);
      b.Upload(norm_device, norm.data(), norm.size() * 4);
      b.RmsNorm({x_device, nullptr, norm_device, 1e-6f, kTokens, kDim, normed});
      MatMulParams matmul{normed, kTokens, kDim, 1, {}};
      matmul.projections[0] = {weight, nullptr, y, kDim};
      b.MatMul(matmul);
      // A collective: the judge learns of what host work did to the subject's memory.
      b.host_stream()->Enqueue([y](Deadline) {
        for (uint32_t i = 0; i < kTokens * kDim; ++i) y[i] *= 2;
        return absl::OkStatus();
      });
      b.Activate({Activation::kSilu, y, x_device, kTokens, kDim, gated});
      b.Download(result_.data(), gated, result_.size() * 4);
    };
    backend_->BeginEncode(EncodeMode::kPlan);
    encode(*backend_);
    EXPECT_TRUE(backend_->FinishPlan().ok());
    const StepGuard guard;
    backend_->BeginEncode(EncodeMode::kRun);
    encode(*backend_);
    EXPECT_TRUE(backend_->Submit(Soon()).ok());
    EXPECT_TRUE(guard.Check().ok()) << guard.Check();
    return backend_->Wait();
  }

  std::unique_ptr<Backend> backend_;
  std::vector<Buffer> buffers_;
  std::vector<float> result_;
};

TEST_F(CheckingTest, PassesBackendsThatAgree) {
  for (const BackendCase& c : RunnableBackends()) {
    buffers_.clear();
    Make(MakeOrDie(c));
    const absl::Status status = RunLayer();
    EXPECT_TRUE(status.ok()) << c << ": " << status;
    for (const float value : result_) EXPECT_TRUE(std::isfinite(value));
    EXPECT_NE(result_[0], 0.0f);
  }
}

TEST_F(CheckingTest, NamesTheOpThatIsWrong) {
  Make(std::make_unique<WrongBackend>());
  const absl::Status status = RunLayer();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_NE(status.message().find("wrong against reference"), std::string::npos) << status;
  EXPECT_NE(status.message().find("Activate): row 0 column 5"), std::string::npos) << status;
}

TEST_F(CheckingTest, PassesErrorsOn) {
  Make(reference::MakeReferenceBackend(1));
  backend_->BeginEncode(EncodeMode::kRun);
  backend_->host_stream()->Enqueue(
      [](Deadline) { return absl::UnavailableError("rank 1 is gone"); });
  ASSERT_TRUE(backend_->Submit(Soon()).ok());
  EXPECT_EQ(backend_->Wait(), absl::UnavailableError("rank 1 is gone"));
  EXPECT_EQ(backend_->Wait().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace tandem::kernels::checking
