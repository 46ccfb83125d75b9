// The backends that a suite runs on, and a rig that runs ops on one.
//
// A suite is built several times (contract.bzl): with the backends of the CPU that this machine can
// run, with the CUDA backend under emulation, and with the CUDA backend on a GPU. What is linked
// defines RunnableBackends and MakeOrDie.
//
//   class NormTest : public testing::TestWithParam<BackendCase> {};
//   TEST_P(NormTest, ...) { Rig rig(GetParam()); float* x = rig.Put(values); rig.Run([&](Backend&
//   b) { b.Encode(...); }); } TANDEM_INSTANTIATE_BACKENDS(NormTest);
#ifndef TANDEM_TESTS_KERNELS_BACKENDS_H_
#define TANDEM_TESTS_KERNELS_BACKENDS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "kernels/backend.h"

namespace tandem::kernels {

struct BackendCase {
  std::string kernels;  // reference|avx2|avx2-vnni|avx512|emulated|gpu
  int threads = 1;      // emulated: 1 runs threads and blocks forwards, 2 backwards
  bool small = false;   // gpu: under a tool that slows it down
  bool repack = true;   // avx*: whether weights are copied

  bool cuda() const { return kernels == "emulated" || kernels == "gpu"; }
  // Where a suite should take small shapes.
  bool slow() const { return small || kernels == "reference" || kernels == "emulated"; }

  friend std::ostream& operator<<(std::ostream& out, const BackendCase& c) {
    return out << c.kernels << " with " << c.threads << " threads"
               << (c.repack ? "" : ", weights in rows");
  }
};

std::unique_ptr<Backend> MakeOrDie(const BackendCase& c);
std::vector<BackendCase> RunnableBackends();

inline std::string BackendCaseName(const ::testing::TestParamInfo<BackendCase>& info) {
  std::string kernels = info.param.kernels;
  std::replace(kernels.begin(), kernels.end(), '-', '_');
  return kernels + "_" + std::to_string(info.param.threads) + (info.param.repack ? "" : "_rows");
}

#define TANDEM_INSTANTIATE_BACKENDS(suite)                                           \
  INSTANTIATE_TEST_SUITE_P(Backends, suite,                                          \
                           testing::ValuesIn(::tandem::kernels::RunnableBackends()), \
                           ::tandem::kernels::BackendCaseName)

// Emulated instruction sets take minutes on a busy machine.
inline Deadline Soon() { return Deadline::After(std::chrono::minutes(10)); }

// Added to every seed: a run with another TANDEM_TEST_SEED has other inputs, and can have them
// again.
inline uint32_t FreshSeed() {
  static const char* const text = std::getenv("TANDEM_TEST_SEED");
  return text == nullptr ? 0 : static_cast<uint32_t>(std::strtoul(text, nullptr, 10));
}

// Repeatable random values.
class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed + FreshSeed()) {}

  float Uniform(float low, float high) {
    return low + (high - low) * static_cast<float>(engine_() >> 8) * 0x1p-24f;
  }
  // In [low, high].
  int Int(int low, int high) {
    return low + static_cast<int>(engine_() % static_cast<uint32_t>(high - low + 1));
  }
  std::vector<float> Floats(size_t n, float low = -1, float high = 1) {
    std::vector<float> values(n);
    for (float& v : values) v = Uniform(low, high);
    return values;
  }
  std::mt19937& engine() { return engine_; }

 private:
  std::mt19937 engine_;
};

// One backend and the memory of one test.
class Rig {
 public:
  explicit Rig(const BackendCase& c) : Rig(c, MakeOrDie(c)) {}
  Rig(const BackendCase& c, std::unique_ptr<Backend> backend)
      : case_(c), backend_(std::move(backend)) {}

  Backend& backend() { return *backend_; }
  const BackendCase& backend_case() const { return case_; }

  // Device memory with these values, `misaligned_by` elements past an aligned address.
  template <typename T>
  T* Put(const std::vector<T>& values, size_t misaligned_by = 0) {
    T* const data = Room<T>(values.size(), misaligned_by);
    Execute([&](Backend& b) { b.Upload(data, values.data(), values.size() * sizeof(T)); });
    return data;
  }

  // Room for n floats, all NaN: what an op does not write shows.
  float* Poisoned(size_t n, size_t misaligned_by = 0) {
    return Put(std::vector<float>(n, std::numeric_limits<float>::quiet_NaN()), misaligned_by);
  }

  template <typename T>
  std::vector<T> Get(const T* data, size_t n) {
    std::vector<T> values(n);
    Execute([&](Backend& b) { b.Download(values.data(), data, n * sizeof(T)); });
    return values;
  }

  // A plan pass, then the same encoding for real.
  void Run(const std::function<void(Backend&)>& encode) {
    backend_->BeginEncode(EncodeMode::kPlan);
    encode(*backend_);
    ASSERT_TRUE(backend_->FinishPlan().ok());
    Execute(encode);
  }

  // Without a plan pass.
  void Execute(const std::function<void(Backend&)>& encode) {
    backend_->BeginEncode(EncodeMode::kRun);
    encode(*backend_);
    const absl::Status done = backend_->SubmitAndWait(Soon());
    ASSERT_TRUE(done.ok()) << done;
  }

 private:
  template <typename T>
  T* Room(size_t n, size_t misaligned_by) {
    auto buffer = backend_->Allocate((n + misaligned_by) * sizeof(T));
    EXPECT_TRUE(buffer.ok()) << buffer.status();
    buffers_.push_back(std::move(buffer).value());
    return reinterpret_cast<T*>(buffers_.back().data()) + misaligned_by;
  }

  const BackendCase case_;
  std::unique_ptr<Backend> backend_;
  std::vector<Buffer> buffers_;
};

// |actual - expected| <= tolerance * max(1, |expected|) everywhere; NaN never passes.
inline void ExpectClose(const std::vector<float>& actual, const std::vector<float>& expected,
                        float tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    const float allowed = tolerance * std::max(1.0f, std::abs(expected[i]));
    ASSERT_TRUE(std::abs(actual[i] - expected[i]) <= allowed)
        << "at " << i << " of " << actual.size() << ": " << actual[i] << ", expected "
        << expected[i];
  }
}

// The same bits everywhere.
inline void ExpectSameBits(const std::vector<float>& actual, const std::vector<float>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_EQ(std::memcmp(&actual[i], &expected[i], sizeof(float)), 0)
        << "at " << i << " of " << actual.size() << ": " << actual[i] << ", expected "
        << expected[i];
  }
}

}  // namespace tandem::kernels

#endif  // TANDEM_TESTS_KERNELS_BACKENDS_H_
