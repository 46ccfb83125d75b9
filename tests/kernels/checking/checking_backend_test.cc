#include "tests/kernels/checking/checking_backend.h"

#include <cmath>
#include <variant>

#include "common/base/step_guard.h"
#include "kernels/host/host_backend.h"
#include "kernels/reference/backend.h"
#include "kernels/reference/ops.h"
#include "tests/kernels/backends.h"

namespace tandem::kernels::checking {
namespace {

// The reference with one wrong op: Activate leaves the gate's curve out in one column.
class WrongBackend : public host::HostBackend {
 public:
  WrongBackend() : HostBackend("wrong", 1) {}
  void Encode(const Op& op) override {
    reference::Encode(list(), op);
    if (const auto* params = std::get_if<ActivateParams>(&op); params != nullptr) {
      list().Add(
          "wrong", 1, +[](const ActivateParams& p, const host::TaskContext&) { p.out[5] += 0.01f; },
          *params);
    }
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
      b.Encode(RmsNormParams{x_device, nullptr, norm_device, 1e-6f, kTokens, kDim, normed});
      MatMulParams matmul{normed, kTokens, kDim, 1, {}};
      matmul.projections[0] = {weight, nullptr, y, kDim};
      b.Encode(matmul);
      // A collective: the judge learns of what host work did to the subject's memory.
      b.host_stream()->Enqueue([y](Deadline) {
        for (uint32_t i = 0; i < kTokens * kDim; ++i) y[i] *= 2;
        return absl::OkStatus();
      });
      b.Encode(ActivateParams{Activation::kSilu, y, x_device, kTokens, kDim, gated});
      b.Download(result_.data(), gated, result_.size() * 4);
    };
    backend_->BeginEncode(EncodeMode::kPlan);
    encode(*backend_);
    EXPECT_TRUE(backend_->FinishPlan().ok());
    const StepGuard guard;
    backend_->BeginEncode(EncodeMode::kRun);
    encode(*backend_);
    const auto ticket = backend_->Submit(Soon());
    EXPECT_TRUE(ticket.ok()) << ticket.status();
    EXPECT_TRUE(guard.Check().ok()) << guard.Check();
    return backend_->Wait(*ticket);
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

// Writes the row of slot 0 over that of slot 1 as well.
class WrongPages final : public WrongBackend {
 public:
  void Encode(const Op& op) override {
    WrongBackend::Encode(op);
    if (const auto* write = std::get_if<RopeWriteKvParams>(&op); write != nullptr) {
      list().Add(
          "wrong", 1,
          +[](const RopeWriteKvParams& params, const host::TaskContext&) {
            const size_t bytes = tensor::RowBytes(params.pages.type, params.pages.head_dim);
            auto* const k = static_cast<std::byte*>(params.pages.k);
            std::copy_n(k, bytes, k + bytes);
          },
          *write);
    }
  }
};

class CheckingPagesTest : public CheckingTest {
 protected:
  // Three tokens written to pages and attended to.
  absl::Status RunAttention(tensor::Type type, bool latent) {
    constexpr uint32_t kHeads = 2, kHeadDim = 64, kBlock = 4;
    Random random(2);
    const auto q = random.Floats(kTokens * kHeads * kHeadDim), k = random.Floats(q.size()),
               v = random.Floats(q.size());
    const uint32_t kv_heads = latent ? 1 : kHeads;
    const std::vector<int32_t> ints = {0, 1, 2, 0, kTokens, kTokens, 0};
    const std::vector<float> sinks = {0.5f, -1.0f};
    auto* const ints_device = reinterpret_cast<int32_t*>(Room(ints.size()));
    float* const sinks_device = Room(sinks.size());
    RopeWriteKvParams write{};
    write.q = Room(q.size());
    write.k = Room(k.size());
    float* const v_device = Room(v.size());
    write.v = latent ? nullptr : v_device;
    write.tokens = kTokens;
    write.heads = kHeads;
    write.positions = write.slots = ints_device;
    const size_t page_values = kBlock * kv_heads * kHeadDim;
    write.pages = {type,
                   Room(page_values),
                   latent ? nullptr : Room(page_values),
                   1,
                   kBlock,
                   kv_heads,
                   kHeadDim,
                   latent ? 32 : kHeadDim,
                   latent};
    AttentionParams attend{};
    attend.q = write.q;
    attend.tokens = kTokens;
    attend.num_seqs = 1;
    attend.query_offsets = ints_device + 3;
    attend.context_lens = ints_device + 5;
    attend.block_tables = attend.table_rows = ints_device + 6;
    attend.table_stride = 1;
    attend.pages = write.pages;
    attend.heads = kHeads;
    attend.heads_per_kv = kHeads / kv_heads;
    attend.scale = 0.125f;
    attend.softcap = 10;
    attend.sinks = sinks_device;
    attend.max_query_len = attend.max_context_len = kTokens;
    attend.out = Room(q.size());
    result_.assign(size_t{kTokens} * kHeads * write.pages.value_dim, 0.0f);
    const auto encode = [&](Backend& b) {
      b.Upload(ints_device, ints.data(), ints.size() * 4);
      b.Upload(sinks_device, sinks.data(), sinks.size() * 4);
      b.Upload(write.q, q.data(), q.size() * 4);
      b.Upload(write.k, k.data(), k.size() * 4);
      b.Upload(v_device, v.data(), v.size() * 4);
      b.Encode(write);
      b.Encode(attend);
      b.Download(result_.data(), attend.out, result_.size() * 4);
    };
    backend_->BeginEncode(EncodeMode::kPlan);
    encode(*backend_);
    EXPECT_TRUE(backend_->FinishPlan().ok());
    backend_->BeginEncode(EncodeMode::kRun);
    encode(*backend_);
    return backend_->SubmitAndWait(Soon());
  }

  static constexpr tensor::Type kTypes[] = {tensor::Type::kF32, tensor::Type::kF16,
                                            tensor::Type::kBF16, tensor::Type::kQ8_0};
};

TEST_F(CheckingPagesTest, PassesBackendsThatAgree) {
  for (const BackendCase& c : RunnableBackends()) {
    for (const tensor::Type type : kTypes) {
      for (const bool latent : {false, true}) {
        buffers_.clear();
        Make(MakeOrDie(c));
        const absl::Status status = RunAttention(type, latent);
        EXPECT_TRUE(status.ok()) << c << ", " << tensor::Name(type) << ": " << status;
        for (const float value : result_) EXPECT_TRUE(std::isfinite(value));
        EXPECT_NE(result_[0], 0.0f);
      }
    }
  }
}

TEST_F(CheckingPagesTest, FindsAWrongRowInPagesOfEveryType) {
  for (const tensor::Type type : kTypes) {
    for (const bool latent : {false, true}) {
      buffers_.clear();
      Make(std::make_unique<WrongPages>());
      const absl::Status status = RunAttention(type, latent);
      EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << tensor::Name(type);
      EXPECT_NE(status.message().find("RopeWriteKv): row 1 column 0"), std::string::npos) << status;
    }
  }
}

// The op whose outputs are of three kinds: each backend writes to its own memory.
TEST_F(CheckingTest, ComparesLogProbs) {
  Make(reference::MakeReferenceBackend(2));
  const std::vector<float> logits = {0, 1, 3, 1};
  const std::vector<int32_t> sampled = {3}, ids = {0};
  const std::vector<LogProbsRow> rows = {
      {.logits_row = 0, .sample = 0, .ids_begin = 0, .ids_end = 1, .top_n = 2, .out_begin = 0}};
  float* const logits_device = Room(4);
  auto* const sampled_device = reinterpret_cast<int32_t*>(Room(1));
  auto* const ids_device = reinterpret_cast<int32_t*>(Room(1));
  auto* const rows_device = reinterpret_cast<LogProbsRow*>(Room(sizeof(LogProbsRow) / 4));
  auto* const out_ids = reinterpret_cast<int32_t*>(Room(4));
  float* const out_logprobs = Room(4);
  auto* const out_ranks = reinterpret_cast<int32_t*>(Room(4));
  std::vector<int32_t> got_ids(4), got_ranks(4);
  backend_->BeginEncode(EncodeMode::kRun);
  backend_->Upload(logits_device, logits.data(), 16);
  backend_->Upload(sampled_device, sampled.data(), 4);
  backend_->Upload(ids_device, ids.data(), 4);
  backend_->Upload(rows_device, rows.data(), sizeof(LogProbsRow));
  backend_->Encode(LogProbsParams{logits_device, 4, rows_device, 1, ids_device, sampled_device, 4,
                                  out_ids, out_logprobs, out_ranks});
  backend_->Download(got_ids.data(), out_ids, 16);
  backend_->Download(got_ranks.data(), out_ranks, 16);
  const absl::Status status = backend_->SubmitAndWait(Soon());
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(got_ids, (std::vector<int32_t>{3, 0, 2, 1}));
  EXPECT_EQ(got_ranks, (std::vector<int32_t>{2, 4, 1, 2}));
}

TEST_F(CheckingTest, PassesErrorsOn) {
  Make(reference::MakeReferenceBackend(1));
  backend_->BeginEncode(EncodeMode::kRun);
  backend_->host_stream()->Enqueue(
      [](Deadline) { return absl::UnavailableError("rank 1 is gone"); });
  const auto ticket = backend_->Submit(Soon());
  ASSERT_TRUE(ticket.ok()) << ticket.status();
  EXPECT_EQ(backend_->Wait(*ticket), absl::UnavailableError("rank 1 is gone"));
  EXPECT_EQ(backend_->Wait(*ticket).code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace tandem::kernels::checking
