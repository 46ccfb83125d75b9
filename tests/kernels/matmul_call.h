// Calls of MatMul through a backend, in dense form: weights and inputs of a seed, laid out as a
// test asks, and results without the padding, which nothing may touch.
#ifndef TANDEM_TESTS_KERNELS_MATMUL_CALL_H_
#define TANDEM_TESTS_KERNELS_MATMUL_CALL_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "tests/kernels/backends.h"
#include "tests/kernels/matmul_problem.h"

namespace tandem::kernels {

// One weight of a call, and what to compare with.
struct Part {
  cpu::Matrix matrix;
  std::vector<float> bias;  // empty: none
  float scale = 1;          // Weight::scales
};

inline Part MakePart(uint32_t seed, tensor::Type type, uint32_t rows, uint32_t cols, bool bias) {
  return {cpu::RandomMatrix(seed, type, rows, cols),
          bias ? Random(seed).Floats(rows, -3, 3) : std::vector<float>()};
}

// Location of the call's x and its used columns.
struct Input {
  uint32_t tokens;
  uint32_t col_begin;
  uint32_t col_count;
  std::vector<float> x;  // (tokens, col_count), dense

  Input First(uint32_t n) const { return Slice(0, n); }
  Input Slice(uint32_t begin, uint32_t n) const {
    const auto at = x.begin() + static_cast<ptrdiff_t>(size_t{begin} * col_count);
    return {n, col_begin, col_count, {at, at + static_cast<ptrdiff_t>(size_t{n} * col_count)}};
  }
};

inline Input MakeInput(uint32_t seed, uint32_t tokens, uint32_t col_begin, uint32_t col_count) {
  return {tokens, col_begin, col_count, cpu::RandomFloats(seed, size_t{tokens} * col_count)};
}

// How rows of x and y lie in memory.
struct Layout {
  uint32_t x_padding = 0;
  uint32_t x_misaligned_by = 0;
  uint32_t y_padding = 0;
};

inline constexpr float kLeft = -7.5f;  // what the padding of y holds

// y of every part, (tokens, rows) dense.
inline std::vector<std::vector<float>> Multiply(Rig& rig, const std::vector<const Part*>& parts,
                                                const Input& input, Layout layout = {}) {
  const uint32_t x_stride = input.col_count + layout.x_padding;
  // Reads between rows give NaNs.
  std::vector<float> x(size_t{input.tokens} * x_stride, std::numeric_limits<float>::quiet_NaN());
  for (uint32_t t = 0; t < input.tokens; ++t) {
    std::copy_n(input.x.begin() + static_cast<ptrdiff_t>(size_t{t} * input.col_count),
                input.col_count, x.begin() + static_cast<ptrdiff_t>(size_t{t} * x_stride));
  }
  MatMulParams params = {};
  params.x = rig.Put(x, layout.x_misaligned_by);
  params.tokens = input.tokens;
  params.x_stride = x_stride;
  params.num_projections = static_cast<uint32_t>(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    Weight weight = parts[i]->matrix.weight();
    weight.col_begin = input.col_begin;
    weight.col_count = input.col_count;
    if (parts[i]->scale != 1) weight.scales = &parts[i]->scale;
    const auto placed = rig.backend().PlaceWeight(weight);
    EXPECT_TRUE(placed.ok()) << placed.status();
    const uint32_t y_stride = weight.rows + layout.y_padding;
    params.projections[i] = {*placed, parts[i]->bias.empty() ? nullptr : rig.Put(parts[i]->bias),
                             rig.Put(std::vector<float>(size_t{input.tokens} * y_stride, kLeft)),
                             y_stride};
  }
  rig.Run([&](Backend& b) { b.Encode(params); });
  std::vector<std::vector<float>> all;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Projection& p = params.projections[i];
    const auto padded = rig.Get(p.y, size_t{input.tokens} * p.y_stride);
    auto& dense = all.emplace_back();
    for (size_t at = 0; at < padded.size(); ++at) {
      if (at % p.y_stride < p.weight.rows) {
        dense.push_back(padded[at]);
      } else {
        EXPECT_EQ(padded[at], kLeft) << "beside row " << at / p.y_stride;
      }
    }
  }
  return all;
}

}  // namespace tandem::kernels

#endif  // TANDEM_TESTS_KERNELS_MATMUL_CALL_H_
