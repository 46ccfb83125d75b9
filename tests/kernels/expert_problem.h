// Calls of ExpertMatMul with random experts and choices, for its tests.
#ifndef TANDEM_TESTS_KERNELS_EXPERT_PROBLEM_H_
#define TANDEM_TESTS_KERNELS_EXPERT_PROBLEM_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "tests/kernels/backends.h"
#include "tests/kernels/matmul_problem.h"

namespace tandem::kernels {

// Experts of one type as they lie in a file, one after the other.
struct Experts {
  cpu::Matrix matrix;  // (experts * rows, cols)
  uint32_t rows;
  std::vector<float> bias;    // (experts, rows)
  std::vector<float> scales;  // (experts) or empty

  float scale(size_t expert) const { return scales.empty() ? 1.0f : scales[expert]; }
  Weight weight(uint32_t expert) const {
    Weight weight{matrix.type, matrix.row(expert * rows), rows, matrix.cols, matrix.stride, 0,
                  matrix.cols};
    if (!scales.empty()) weight.scales = &scales[expert];
    return weight;
  }
};

inline Experts MakeExperts(uint32_t seed, tensor::Type type, uint32_t experts, uint32_t rows,
                           uint32_t cols) {
  return {cpu::RandomMatrix(seed, type, experts * rows, cols),
          rows,
          Random(seed).Floats(size_t{experts} * rows),
          {}};
}

// The parameters of a call. Ids are of all experts, of which the rank has [begin, begin + count).
struct ExpertProblem {
  uint32_t tokens;
  uint32_t top_k;
  uint32_t begin;
  uint32_t count;
  std::vector<int32_t> ids;
  std::vector<float> weights;  // down; empty: up
  std::vector<float> x;        // (rows of x, cols), dense

  bool down() const { return !weights.empty(); }
  size_t choices() const { return ids.size(); }
  bool Local(size_t choice) const {
    return ids[choice] >= static_cast<int32_t>(begin) &&
           ids[choice] < static_cast<int32_t>(begin + count);
  }
  size_t XRow(size_t choice) const { return down() ? choice : choice / top_k; }

  ExpertProblem Token(uint32_t t, uint32_t cols) const { return Tokens(t, 1, cols); }
  // The part of some tokens.
  ExpertProblem Tokens(uint32_t first, uint32_t number, uint32_t cols) const {
    const auto part = [&](const auto& all, size_t size) {
      const auto from = all.begin() + static_cast<ptrdiff_t>(first * size);
      return std::decay_t<decltype(all)>(from, from + static_cast<ptrdiff_t>(number * size));
    };
    return {number,
            top_k,
            begin,
            count,
            part(ids, top_k),
            down() ? part(weights, top_k) : weights,
            part(x, size_t{cols} * (down() ? top_k : 1))};
  }
};

inline ExpertProblem MakeExpertProblem(uint32_t seed, bool down, uint32_t tokens, uint32_t top_k,
                                       uint32_t experts, uint32_t begin, uint32_t count,
                                       uint32_t cols) {
  Random random(seed);
  ExpertProblem p{tokens, top_k, begin, count, {}, {}, {}};
  std::vector<int32_t> all(experts);
  for (uint32_t t = 0; t < tokens; ++t) {
    std::iota(all.begin(), all.end(), 0);
    std::shuffle(all.begin(), all.end(), random.engine());
    p.ids.insert(p.ids.end(), all.begin(), all.begin() + top_k);
  }
  if (down) p.weights = random.Floats(p.ids.size(), 0.01f, 1);
  p.x = cpu::RandomFloats(seed, size_t{tokens} * (down ? top_k : 1) * cols);
  return p;
}

inline constexpr float kExpertsLeft = -7.5f;  // what y held before

// y of every projection: (choices, rows), or (tokens, rows) for down.
inline std::vector<std::vector<float>> RunExperts(Rig& rig, const ExpertProblem& p,
                                                  const std::vector<const Experts*>& projections,
                                                  bool bias, uint32_t col_begin = 0,
                                                  uint32_t col_count = 0) {
  ExpertMatMulParams params = {};
  const uint32_t cols = projections[0]->matrix.cols;
  params.x = rig.Put(p.x);
  params.tokens = p.tokens;
  params.x_stride = col_count == 0 ? cols : col_count;
  params.top_k = p.top_k;
  params.ids = rig.Put(p.ids);
  params.weights = p.down() ? rig.Put(p.weights) : nullptr;
  params.expert_begin = p.begin;
  params.num_experts = p.count;
  params.num_projections = static_cast<uint32_t>(projections.size());
  const size_t y_rows = p.down() ? p.tokens : p.choices();
  for (size_t i = 0; i < projections.size(); ++i) {
    const Experts& experts = *projections[i];
    Weight weight = experts.weight(p.begin);
    weight.count = p.count;
    weight.matrix_stride_bytes = experts.rows * experts.matrix.stride;
    if (col_count != 0) {
      weight.col_begin = col_begin;
      weight.col_count = col_count;
    }
    weight = rig.backend().PlaceWeight(weight).value();
    params.projections[i] = {
        weight, bias ? rig.Put(experts.bias) + p.begin * experts.rows : nullptr, experts.rows,
        rig.Put(std::vector<float>(y_rows * experts.rows, kExpertsLeft))};
  }
  rig.Run([&](Backend& b) { b.Encode(params); });
  std::vector<std::vector<float>> all;
  for (size_t i = 0; i < projections.size(); ++i) {
    all.push_back(rig.Get(params.projections[i].y, y_rows * projections[i]->rows));
  }
  return all;
}

}  // namespace tandem::kernels

#endif  // TANDEM_TESTS_KERNELS_EXPERT_PROBLEM_H_
