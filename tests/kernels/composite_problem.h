// Composite ops beside their parts: the same bits.
#ifndef TANDEM_TESTS_KERNELS_COMPOSITE_PROBLEM_H_
#define TANDEM_TESTS_KERNELS_COMPOSITE_PROBLEM_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/kernels/backends.h"
#include "tests/kernels/matmul_problem.h"

namespace tandem::kernels {

// Collects the arrays that a composite's result consists of, counted in floats.
struct Results {
  std::vector<std::pair<float*, size_t>>& arrays;
  std::vector<std::pair<float*, size_t>>& intermediate;

  template <class T>
  void operator()(const char*, T* pointer, const Array& array) const {
    if constexpr (!std::is_const_v<T>) {
      const size_t floats = tensor::RowBytes(array.type, array.span()) / sizeof(float);
      if (array.written()) arrays.emplace_back(static_cast<float*>(pointer), floats);
      if (array.access == Access::kScratch) {
        intermediate.emplace_back(static_cast<float*>(pointer), floats);
      }
    }
  }
  void operator()(const char*, const Weight&) const {}
};

class CompositeProblem : public testing::TestWithParam<BackendCase> {
 protected:
  // Every other one has a scale, where the backend takes it.
  Weight Place(Weight weight) {
    scaled_ = !scaled_;
    const bool can = !GetParam().cuda() || weight.type == tensor::Type::kNVFP4;
    if (scaled_ && can) weight.scales = &kScale;
    return rig_.backend().PlaceWeight(weight).value();
  }
  Projection Project(const cpu::Matrix& matrix, float* y, bool bias) {
    return {Place(matrix.weight()), bias ? rig_.Put(random_.Floats(matrix.rows)) : nullptr, y,
            matrix.rows};
  }
  float* Rows(uint32_t tokens, uint32_t cols) {
    return rig_.Put(random_.Floats(size_t{tokens} * cols));
  }
  RmsNormParams Norm(uint32_t rows, uint32_t dim, float* residual, const float* add, float* out) {
    return {residual, add, rig_.Put(random_.Floats(dim)), 1e-6f, rows, dim, out};
  }

  // Runs the parts, then the composite on the same inputs.
  template <class Params>
  void ExpectSameBitsAsParts(const Params& params) {
    std::vector<std::pair<float*, size_t>> arrays, intermediate;
    params.ForEachPointer(params, Results{arrays, intermediate});
    ASSERT_FALSE(arrays.empty());
    std::vector<std::vector<float>> before, expected;
    size_t most = 0;
    for (const auto& [data, count] : intermediate) most = std::max(most, count);
    const std::vector<float> poison(most, std::numeric_limits<float>::quiet_NaN());
    for (const auto& [data, count] : arrays) before.push_back(rig_.Get(data, count));
    rig_.Run([&](Backend& b) { Decompose(params, [&](const auto& part) { b.Encode(part); }); });
    for (const auto& [data, count] : arrays) expected.push_back(rig_.Get(data, count));
    rig_.Run([&](Backend& b) {
      for (size_t i = 0; i < arrays.size(); ++i) {
        b.Upload(arrays[i].first, before[i].data(), before[i].size() * sizeof(float));
      }
      // The composite may not live on what its parts left there.
      for (const auto& [data, count] : intermediate) {
        b.Upload(data, poison.data(), count * sizeof(float));
      }
      b.Encode(params);
    });
    for (size_t i = 0; i < arrays.size(); ++i) {
      EXPECT_NE(before[i], expected[i]);
      EXPECT_TRUE(std::isfinite(expected[i][0]));
      ExpectSameBits(rig_.Get(arrays[i].first, arrays[i].second), expected[i]);
    }
  }

  Rig rig_{GetParam()};
  Random random_{3};

 private:
  static constexpr float kScale = 0.37f;

  bool scaled_ = false;
};

}  // namespace tandem::kernels

#endif  // TANDEM_TESTS_KERNELS_COMPOSITE_PROBLEM_H_
