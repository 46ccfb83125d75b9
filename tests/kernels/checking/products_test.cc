// The checking backend runs the products of experts and heads on both backends, and names the one
// that is wrong.
#include <cmath>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "kernels/host/host_backend.h"
#include "kernels/reference/backend.h"
#include "kernels/reference/ops.h"
#include "tests/kernels/backends.h"
#include "tests/kernels/checking/checking_backend.h"

namespace tandem::kernels::checking {
namespace {

constexpr uint32_t kTokens = 5, kDim = 64, kRows = 24, kExperts = 4, kTopK = 2, kHeads = 2;

// The reference, but for one product whose last output has a wrong first value.
class WrongBackend final : public host::HostBackend {
 public:
  explicit WrongBackend(std::string op) : HostBackend("wrong", 1), op_(std::move(op)) {}
  void Encode(const Op& op) override {
    reference::Encode(list(), op);
    if (OpName(op) != op_) return;
    if (const auto* experts = std::get_if<ExpertMatMulParams>(&op); experts != nullptr) {
      Spoil(experts->projections[experts->num_projections - 1].y);
    } else {
      const auto& heads = std::get<HeadMatMulParams>(op);
      Spoil(heads.y + heads.y_head_stride);
    }
  }

 private:
  bool CanCompute(tensor::Type) const override { return true; }
  void Spoil(float* value) {
    list().Add(
        "spoil", 1, +[](float* const& v, const host::TaskContext&) { *v += 100; }, value);
  }

  const std::string op_;
};

// Up, down, plain and transposed on device memory; the status of the step.
class CheckedProductsTest : public testing::Test {
 protected:
  absl::Status RunProducts(std::unique_ptr<Backend> subject) {
    buffers_.clear();
    backend_ = MakeCheckingBackend(std::move(subject), reference::MakeReferenceBackend(1));
    Random random(1);
    const auto table = random.Floats(kExperts * kRows * kDim);
    const auto x = random.Floats(kTokens * kHeads * kDim), bias = random.Floats(kExperts * kRows),
               weights = random.Floats(kTokens * kTopK, 0, 1);
    const std::vector<int32_t> ids = {0, 1, 3, 2, 1, 0, 2, 0, 3, 1};
    const Weight matrices = {.type = tensor::Type::kF32,
                             .data = table.data(),
                             .rows = kRows,
                             .cols = kDim,
                             .row_stride_bytes = kDim * 4,
                             .col_count = kDim,
                             .count = kExperts,
                             .matrix_stride_bytes = kRows * kDim * 4};
    const Weight experts = backend_->PlaceWeight(matrices).value();
    Weight heads = matrices;
    heads.use = WeightUse::kHeads;
    heads = backend_->PlaceWeight(heads).value();
    const ExpertProjection projection = {experts, Room(bias.size()), kRows,
                                         Room(kTokens * kTopK * kRows)};
    float* const x_device = Room(x.size());
    auto* const ids_device = reinterpret_cast<int32_t*>(Room(ids.size()));
    float* const weights_device = Room(weights.size());
    // Experts 1 and 2 are this rank's.
    ExpertMatMulParams up = {x_device, kTokens, kDim, kTopK, ids_device, nullptr, 1, 2, 2, {}};
    up.projections = {projection, projection};
    up.projections[1].y = Room(kTokens * kTopK * kRows);
    ExpertMatMulParams down = up;
    down.weights = weights_device;
    down.num_projections = 1;
    down.projections[0].y = Room(kTokens * kRows);
    HeadMatMulParams plain = {x_device,
                              kTokens,
                              kHeads,
                              kHeads * kDim,
                              kDim,
                              heads,
                              kRows / 2,
                              2,
                              7,
                              false,
                              Room(kTokens * kHeads * 9),
                              kHeads * 9,
                              9};
    HeadMatMulParams transposed = plain;
    transposed.transposed = true;
    transposed.y = Room(kTokens * kHeads * kDim);
    transposed.y_token_stride = kHeads * kDim;
    transposed.y_head_stride = kDim;
    results_.assign(4, std::vector<float>(kTokens));
    const auto encode = [&](Backend& b) {
      b.Upload(x_device, x.data(), x.size() * 4);
      b.Upload(ids_device, ids.data(), ids.size() * 4);
      b.Upload(weights_device, weights.data(), weights.size() * 4);
      b.Upload(const_cast<float*>(projection.bias), bias.data(), bias.size() * 4);
      b.Encode(up);
      b.Encode(down);
      b.Encode(plain);
      b.Encode(transposed);
      const float* const outputs[] = {up.projections[1].y + kRows, down.projections[0].y, plain.y,
                                      transposed.y};
      for (size_t i = 0; i < 4; ++i) b.Download(results_[i].data(), outputs[i], kTokens * 4);
    };
    backend_->BeginEncode(EncodeMode::kPlan);
    encode(*backend_);
    EXPECT_TRUE(backend_->FinishPlan().ok());
    backend_->BeginEncode(EncodeMode::kRun);
    encode(*backend_);
    return backend_->SubmitAndWait(Soon());
  }

  float* Room(size_t n) {
    buffers_.push_back(backend_->Allocate(n * 4).value());
    return reinterpret_cast<float*>(buffers_.back().data());
  }

  std::unique_ptr<Backend> backend_;
  std::vector<Buffer> buffers_;
  std::vector<std::vector<float>> results_;  // the first values that each op wrote
};

TEST_F(CheckedProductsTest, PassesBackendsThatAgree) {
  for (const BackendCase& c : RunnableBackends()) {
    const absl::Status status = RunProducts(MakeOrDie(c));
    EXPECT_TRUE(status.ok()) << c << ": " << status;
    for (const auto& values : results_) {
      for (const float value : values) EXPECT_TRUE(std::isfinite(value) && value != 0.0f) << c;
    }
  }
}

TEST_F(CheckedProductsTest, NamesTheProductThatIsWrong) {
  for (const std::string op : {"ExpertMatMul", "HeadMatMul"}) {
    const absl::Status status = RunProducts(std::make_unique<WrongBackend>(op));
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << op;
    EXPECT_NE(status.message().find(op + "): row 0 column 0"), std::string::npos)
        << op << ": " << status;
  }
}

}  // namespace
}  // namespace tandem::kernels::checking
