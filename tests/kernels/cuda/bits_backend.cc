#include "tests/kernels/cuda/bits_backend.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

#include "common/base/status.h"
#include "kernels/cuda/cuda_backend.h"
#include "tests/kernels/cuda/sm_hog.h"

namespace tandem::kernels::cuda {
namespace {

uint64_t bits_of_test = 0;

class BitsBackend final : public CudaBackend {
 public:
  using CudaBackend::CudaBackend;

  void Download(void* host, const void* device, size_t bytes) override {
    CudaBackend::Download(host, device, bytes);
    downloads_.push_back({static_cast<const std::byte*>(host), bytes});
  }
  absl::Status Wait(Ticket ticket) override {
    absl::Status status = CudaBackend::Wait(ticket);
    for (const auto& part : downloads_) {
      bits_of_test = XXH3_64bits_withSeed(part.data(), part.size(), bits_of_test);
    }
    downloads_.clear();
    return status;
  }

 private:
  std::vector<std::span<const std::byte>> downloads_;
};

class BitsPrinter : public testing::EmptyTestEventListener {
 public:
  void OnTestStart(const testing::TestInfo&) override { bits_of_test = 0; }
  void OnTestEnd(const testing::TestInfo& test) override {
    if (!BitsWanted()) return;
    std::printf("bits %s.%s %016llx\n", test.test_suite_name(), test.name(),
                static_cast<unsigned long long>(bits_of_test));
  }
};

class HogEnvironment : public testing::Environment {
 public:
  void SetUp() override {
    if (std::getenv("TANDEM_TEST_HOG") == nullptr) return;
    hog_ = std::make_unique<SmHog>();
    ASSERT_EQ(hog_->Start(), "");
  }
  void TearDown() override { hog_ = nullptr; }

 private:
  std::unique_ptr<SmHog> hog_;
};

const bool registered = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new BitsPrinter);
  testing::AddGlobalTestEnvironment(new HogEnvironment);
  return true;
}();

}  // namespace

bool BitsWanted() { return std::getenv("TANDEM_TEST_BITS") != nullptr; }

absl::StatusOr<std::unique_ptr<Backend>> MakeBitsBackend() {
  auto backend = std::make_unique<BitsBackend>("cuda");
  TANDEM_RETURN_IF_ERROR(backend->Open());
  return backend;
}

}  // namespace tandem::kernels::cuda
