// ExpertMatMul on every backend and weight type: each choice has the bits of a MatMul with its
// expert, contributions are added in ascending order of experts, and all is close to a plain loop.
// On CUDA F32 products have another order of sums than MatMul's, and those of F16 and BF16 weights
// are rounded to BF16 where there are more than a few tokens: there the plain loop counts, with
// what that rounding can cause.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "tests/kernels/backends.h"
#include "tests/kernels/matmul_problem.h"

namespace tandem::kernels {
namespace {

using cpu::Matrix;
using cpu::RandomFloats;
using tensor::Type;

// Experts of one type as they lie in a file, one after the other.
struct Experts {
  Matrix matrix;  // (experts * rows, cols)
  uint32_t rows;
  std::vector<float> bias;  // (experts, rows)

  Weight weight(uint32_t expert) const {
    return {matrix.type, matrix.row(expert * rows), rows, matrix.cols, matrix.stride, 0,
            matrix.cols};
  }
};

Experts MakeExperts(uint32_t seed, Type type, uint32_t experts, uint32_t rows, uint32_t cols) {
  return {cpu::RandomMatrix(seed, type, experts * rows, cols), rows,
          Random(seed).Floats(size_t{experts} * rows)};
}

// The parameters of a call. Ids are of all experts, of which the rank has [begin, begin + count).
struct Problem {
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

  Problem Token(uint32_t t, uint32_t cols) const { return Tokens(t, 1, cols); }
  // The part of some tokens.
  Problem Tokens(uint32_t first, uint32_t number, uint32_t cols) const {
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

Problem MakeProblem(uint32_t seed, bool down, uint32_t tokens, uint32_t top_k, uint32_t experts,
                    uint32_t begin, uint32_t count, uint32_t cols) {
  Random random(seed);
  Problem p{tokens, top_k, begin, count, {}, {}, {}};
  std::vector<int32_t> all(experts);
  for (uint32_t t = 0; t < tokens; ++t) {
    std::iota(all.begin(), all.end(), 0);
    std::shuffle(all.begin(), all.end(), random.engine());
    p.ids.insert(p.ids.end(), all.begin(), all.begin() + top_k);
  }
  if (down) p.weights = random.Floats(p.ids.size(), 0.01f, 1);
  p.x = RandomFloats(seed, size_t{tokens} * (down ? top_k : 1) * cols);
  return p;
}

constexpr float kLeft = -7.5f;  // what y held before

// y of every projection: (choices, rows), or (tokens, rows) for down.
std::vector<std::vector<float>> RunOp(Rig& rig, const Problem& p,
                                      const std::vector<const Experts*>& projections, bool bias,
                                      uint32_t col_begin = 0, uint32_t col_count = 0) {
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
        rig.Put(std::vector<float>(y_rows * experts.rows, kLeft))};
  }
  rig.Run([&](Backend& b) { b.Encode(params); });
  std::vector<std::vector<float>> all;
  for (size_t i = 0; i < projections.size(); ++i) {
    all.push_back(rig.Get(params.projections[i].y, y_rows * projections[i]->rows));
  }
  return all;
}

// The op's definition, with `multiply(choice)` for the product of a choice.
template <typename Multiply>
std::vector<float> Combine(const Problem& p, uint32_t rows, Multiply multiply) {
  std::vector<float> y((p.down() ? p.tokens : p.choices()) * rows, p.down() ? 0.0f : kLeft);
  for (uint32_t t = 0; t < p.tokens; ++t) {
    std::vector<size_t> order(p.top_k);
    std::iota(order.begin(), order.end(), size_t{t} * p.top_k);
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p.ids[a] < p.ids[b]; });
    for (const size_t choice : order) {
      if (!p.Local(choice)) continue;
      const std::vector<float> value = multiply(choice);
      for (uint32_t r = 0; r < rows; ++r) {
        if (p.down()) {
          y[t * rows + r] += p.weights[choice] * value[r];
        } else {
          y[choice * rows + r] = value[r];
        }
      }
    }
  }
  return y;
}

// By the backend's own MatMul, one choice at a time.
std::vector<float> ByMatMul(Rig& rig, const Problem& p, const Experts& experts, bool bias) {
  const uint32_t cols = experts.matrix.cols;
  const float* const x = rig.Put(p.x);
  const float* const all_bias = rig.Put(experts.bias);
  float* const y = rig.Poisoned(experts.rows);
  return Combine(p, experts.rows, [&](size_t choice) {
    const auto expert = static_cast<uint32_t>(p.ids[choice]);
    MatMulParams params = {x + p.XRow(choice) * cols, 1, cols, 1, {}};
    params.projections[0] = {rig.backend().PlaceWeight(experts.weight(expert)).value(),
                             bias ? all_bias + expert * experts.rows : nullptr, y, experts.rows};
    rig.Run([&](Backend& b) { b.Encode(params); });
    return rig.Get(y, experts.rows);
  });
}

// Values and how far the backend may be from them: what rounding activations to bytes can cause, if
// it does so, and float sums.
struct Bounds {
  std::vector<float> values;
  std::vector<float> slack;
};

// How a backend rounds what it multiplies.
struct Rounding {
  bool to_bytes = false;     // inputs
  double product_error = 0;  // relative, by rounding to BF16
};
constexpr double kBothToBf16 = 0x1p-7 + 0x1p-16;  // inputs and weights

Bounds PlainLoop(const Problem& p, const Experts& experts, bool bias, Rounding rounds) {
  const uint32_t cols = experts.matrix.cols;
  std::vector<float> w(cols);
  const auto product = [&](size_t choice, bool slack) {
    const float* const x = p.x.data() + p.XRow(choice) * cols;
    std::vector<double> half_steps(cols, 0.0);
    for (uint32_t c = 0; rounds.to_bytes && c < cols; ++c) {
      float largest = 0;
      for (uint32_t i = c / 32 * 32; i < c / 32 * 32 + 32; ++i) {
        largest = std::max(largest, std::abs(x[i]));
      }
      half_steps[c] = largest / 127.0 * 0.5001;
    }
    std::vector<float> values(experts.rows);
    for (uint32_t r = 0; r < experts.rows; ++r) {
      const uint32_t row = static_cast<uint32_t>(p.ids[choice]) * experts.rows + r;
      tensor::Dequantize(experts.matrix.type, experts.matrix.row(row), w.data(), cols);
      double sum = bias ? experts.bias[row] : 0.0, magnitude = std::fabs(sum), rounding = 0;
      for (uint32_t c = 0; c < cols; ++c) {
        sum += double{w[c]} * x[c];
        magnitude += std::fabs(double{w[c]} * x[c]);
        rounding += std::fabs(w[c]) * half_steps[c];
        rounding += std::fabs(double{w[c]} * x[c]) * rounds.product_error;
      }
      values[r] = static_cast<float>(slack ? rounding + (magnitude + rounding) * 1e-4 : sum);
    }
    return values;
  };
  return {Combine(p, experts.rows, [&](size_t choice) { return product(choice, false); }),
          Combine(p, experts.rows, [&](size_t choice) { return product(choice, true); })};
}

void ExpectWithin(const std::vector<float>& y, const Bounds& bounds, const std::string& what) {
  ASSERT_EQ(y.size(), bounds.values.size());
  for (size_t i = 0; i < y.size(); ++i) {
    ASSERT_NEAR(y[i], bounds.values[i], std::abs(bounds.slack[i]) + 1e-30f) << what << " at " << i;
  }
}

class ExpertMatMulTest : public testing::TestWithParam<BackendCase> {
 protected:
  bool cuda() const { return GetParam().cuda(); }
  Rounding Rounds(Type type, uint32_t tokens) const {
    if (GetParam().kernels == "reference" || (cuda() && type == Type::kF32)) return {};
    if (cpu::RoundsToBf16(GetParam().kernels, type)) return {.product_error = cpu::kBf16Rounding};
    if (cuda() && tokens > (cpu::Quantised(type) ? 256 : 8)) return {.product_error = kBothToBf16};
    return {.to_bytes = cpu::Quantised(type)};
  }
  // Whether a product has the bits of a MatMul of one token.
  bool LikeMatMul(Type type) const { return !cuda() || cpu::Quantised(type); }
  // Whether its bits do not depend on the number of tokens.
  bool OfOneToken(Type type) const { return LikeMatMul(type) || type == Type::kF32; }
  static uint32_t Cols(Type type) { return std::max(96u, tensor::Traits(type).block_values); }
};

TEST_P(ExpertMatMulTest, EachChoiceHasTheBitsOfItsExpertsMatMul) {
  for (const Type type : cpu::Types()) {
    const uint32_t cols = Cols(type);
    const Experts gate = MakeExperts(1, type, 6, 21, cols);
    const Experts up = MakeExperts(2, Type::kQ8_0, 6, 40, Cols(type));
    for (const uint32_t tokens : {1u, 5u, 50u}) {
      for (const bool down : {false, true}) {
        const Problem p = MakeProblem(tokens, down, tokens, 3, 6, 1, 4, cols);
        Rig rig(GetParam());
        const std::string what = std::string(tensor::Name(type)) + (down ? " down " : " up ") +
                                 std::to_string(tokens) + " tokens";
        const auto projections = down ? std::vector{&gate} : std::vector{&gate, &up};
        const auto y = RunOp(rig, p, projections, /*bias=*/true);
        for (size_t i = 0; i < projections.size(); ++i) {
          const Rounding rounds = Rounds(projections[i]->matrix.type, tokens);
          if (LikeMatMul(projections[i]->matrix.type)) {
            cpu::ExpectSameBits(y[i], ByMatMul(rig, p, *projections[i], true), what);
          }
          ExpectWithin(y[i], PlainLoop(p, *projections[i], true, rounds), what);
        }
      }
    }
  }
}

TEST_P(ExpertMatMulTest, ATokensBitsDependOnlyOnIt) {
  for (const Type type : {Type::kF32, Type::kF16, Type::kQ8_0, Type::kQ4_K, Type::kMXFP4}) {
    const uint32_t cols = Cols(type), rows = cuda() && GetParam().slow() ? 140 : 300;
    const Experts experts = MakeExperts(3, type, 4, rows, cols);
    for (const bool down : {false, true}) {
      const Problem p = MakeProblem(4, down, 90, 2, 4, 0, 4, cols);
      Rig rig(GetParam());
      BackendCase other = GetParam();
      other.threads = 3 - other.threads;
      Rig other_rig(other);
      const auto batch = RunOp(rig, p, {&experts}, false)[0];
      cpu::ExpectSameBits(RunOp(other_rig, p, {&experts}, false)[0], batch, "threads");
      const size_t token_values = batch.size() / p.tokens;
      if (cuda())
        ExpectWithin(batch, PlainLoop(p, experts, false, Rounds(type, p.tokens)), "batch");
      for (uint32_t t = 0; t < p.tokens; t += cuda() ? 40 : 7) {
        const Problem one = p.Token(t, cols);
        const auto alone = RunOp(rig, one, {&experts}, false)[0];
        ASSERT_EQ(alone.size(), token_values);
        const std::string what = "token " + std::to_string(t);
        if (!OfOneToken(type)) {
          ExpectWithin(alone, PlainLoop(one, experts, false, Rounds(type, 1)), what);
          continue;
        }
        cpu::ExpectSameBits(alone.data(), batch.data() + t * token_values, token_values, what);
      }
    }
  }
}

// So many that cuda rounds quantised weights too. How they are cut into tiles, and how large those
// are, depends on how many choose an expert; their bits don't.
TEST_P(ExpertMatMulTest, ManyTokensOfWhichEachDependsOnlyOnItself) {
  constexpr uint32_t kTokens = 300, kMost = 257, kTopK = 2;
  if (!cuda()) return;
  for (const Type type : cpu::Types()) {
    if (type == Type::kF32) continue;
    const uint32_t cols = std::max(160u, tensor::Traits(type).block_values), rows = 139;
    const Experts experts = MakeExperts(17, type, 12, rows, cols);
    for (const bool down : {false, true}) {
      Problem p = MakeProblem(18, down, kTokens, kTopK, 12, 0, 12, cols);
      for (uint32_t t = 0; t < kTokens; ++t) p.ids[t * kTopK] = t < 140 ? 1 : p.ids[t * kTopK];
      Rig rig(GetParam());
      const auto all = RunOp(rig, p, {&experts}, /*bias=*/true)[0];
      const std::string what = std::string(tensor::Name(type)) + (down ? " down" : " up");
      ExpectWithin(all, PlainLoop(p, experts, true, Rounds(type, kTokens)), what);
      // Fewer, some of which this rank has no expert for.
      Problem few = p.Tokens(0, kMost, cols);
      for (uint32_t t = kMost / 2; t < kMost; ++t) few.ids[t * kTopK] = kNoExpert;
      const auto some = RunOp(rig, few, {&experts}, true)[0];
      const size_t token_values = all.size() / kTokens;
      cpu::ExpectSameBits(some.data(), all.data(), kMost / 2 * token_values, what);
    }
  }
}

// Experts that 33, 9, 8, 1, 0, 4, 5 and 17 of 40 tokens choose, beside choices of other ranks'
// experts and of none; the last token has only those.
Problem UnevenProblem(bool down, uint32_t cols) {
  Problem p = MakeProblem(13, down, 40, 3, 10, 1, 8, cols);
  for (int32_t t = 0; t < 40; ++t) {
    int32_t* const ids = p.ids.data() + t * 3;
    ids[0] = t < 33 ? 1 : kNoExpert;
    ids[1] = t < 9 ? 2 : t < 17 ? 3 : t == 17 ? 4 : 9;
    ids[2] = t < 4 ? 6 : t < 9 ? 7 : t < 26 ? 8 : 0;
  }
  return p;
}

// However many others choose the expert, and where the product's columns are cut inside blocks.
TEST_P(ExpertMatMulTest, AChoicesBitsDoNotDependOnWhatOthersChoose) {
  constexpr uint32_t kCols = 1024, kBegin = 170, kCount = 700;
  for (const Type type : cpu::Types()) {
    if (!OfOneToken(type)) continue;
    const Experts experts = MakeExperts(14, type, 10, 37, kCols);
    for (const bool down : {false, true}) {
      Rig rig(GetParam());
      Problem p = UnevenProblem(down, kCount);
      // With half of the experts tiles are wider.
      for (const uint32_t count : {8u, 4u}) {
        p.count = count;
        const auto batch = RunOp(rig, p, {&experts}, /*bias=*/true, kBegin, kCount)[0];
        const size_t token_values = batch.size() / p.tokens;
        for (const uint32_t t : {0u, 4u, 8u, 16u, 17u, 25u, 32u, 39u}) {
          const auto alone = RunOp(rig, p.Token(t, kCount), {&experts}, true, kBegin, kCount)[0];
          cpu::ExpectSameBits(alone.data(), batch.data() + t * token_values, token_values,
                              std::string(tensor::Name(type)) + (down ? " down " : " up ") +
                                  std::to_string(count) + " experts, token " + std::to_string(t));
        }
      }
    }
  }
}

// A rank's experts of a whole-expert split, or its columns of every expert, add up to all of it.
TEST_P(ExpertMatMulTest, RanksAddUp) {
  for (const auto& [type, tokens] : {std::pair{Type::kF32, 9u},
                                     {Type::kF16, 9u},
                                     {Type::kBF16, 3u},
                                     {Type::kQ8_0, 9u},
                                     {Type::kQ4_K, 9u},
                                     {Type::kQ4_K, 3u},
                                     {Type::kMXFP4, 3u},
                                     {Type::kIQ4_XS, 9u}}) {
    const uint32_t cols = 512, rows = 18;
    const Experts experts = MakeExperts(5, type, 5, rows, cols);
    const Problem p = MakeProblem(6, true, tokens, 2, 5, 0, 5, cols);
    const Bounds whole = PlainLoop(p, experts, false, Rounds(type, tokens));
    Rig rig(GetParam());
    const auto add = [](std::vector<float>* sum, const std::vector<float>& more) {
      for (size_t i = 0; i < sum->size(); ++i) (*sum)[i] += more[i];
    };
    Problem part = p;
    part.count = 2;
    std::vector<float> by_experts = RunOp(rig, part, {&experts}, false)[0];
    part.begin = 2;
    part.count = 3;
    add(&by_experts, RunOp(rig, part, {&experts}, false)[0]);
    ExpectWithin(by_experts, whole, "experts");

    std::vector<float> by_columns(whole.values.size(), 0.0f);
    for (const auto& [begin, end] : {std::pair{0u, 170u}, {170u, 300u}, {300u, 512u}}) {
      Problem cut = p;
      cut.x.clear();
      for (size_t row = 0; row < p.choices(); ++row) {
        const auto first = p.x.begin() + static_cast<ptrdiff_t>(row * cols);
        cut.x.insert(cut.x.end(), first + begin, first + end);
      }
      add(&by_columns, RunOp(rig, cut, {&experts}, false, begin, end - begin)[0]);
    }
    ExpectWithin(by_columns, whole, "columns");
  }
}

TEST_P(ExpertMatMulTest, TokensWithoutAnExpertHereAreZerosOrUnchanged) {
  const Experts experts = MakeExperts(7, Type::kQ4_0, 8, 17, 64);
  for (const uint32_t tokens : {6u, 12u}) {
    for (const bool down : {false, true}) {
      Problem p = MakeProblem(8, down, tokens, 2, 8, 4, 2, 64);
      for (size_t i = 0; i < p.ids.size(); ++i) p.ids[i] = i % 2 == 0 ? 3 : 6;
      Rig rig(GetParam());
      const std::vector<float> y = RunOp(rig, p, {&experts}, true)[0];
      for (const float value : y) EXPECT_EQ(value, down ? 0.0f : kLeft);
    }
  }
}

// In ascending order the 1 is lost beside 2^27; in the order of slots it is not.
TEST_P(ExpertMatMulTest, ContributionsAreAddedInAscendingOrderOfExperts) {
  for (const auto& [type, tokens] :
       {std::pair{Type::kF32, 1u}, {Type::kF16, 3u}, {Type::kF16, 12u}}) {
    constexpr uint32_t kCols = 32;
    Experts experts = MakeExperts(11, type, 3, 1, kCols);
    std::memset(experts.matrix.data.get(), 0, 3 * experts.matrix.stride);
    for (uint32_t expert = 0; expert < 3; ++expert) {
      std::byte* const first = experts.matrix.data.get() + expert * experts.matrix.stride;
      const float one = 1;
      const uint16_t half = tensor::FloatToHalf(one);
      if (type == Type::kF32) std::memcpy(first, &one, sizeof(one));
      if (type == Type::kF16) std::memcpy(first, &half, sizeof(half));
    }
    Problem p = MakeProblem(12, true, tokens, 3, 3, 0, 3, kCols);
    p.x.assign(p.x.size(), 0);
    for (uint32_t t = 0; t < tokens; ++t) {
      const int32_t ids[] = {2, 0, 1};
      const float inputs[] = {-0x1p27f, 0x1p27f, 1};
      for (uint32_t j = 0; j < 3; ++j) {
        p.ids[t * 3 + j] = ids[j];
        p.weights[t * 3 + j] = 1;
        p.x[(t * 3 + j) * kCols] = inputs[j];
      }
    }
    Rig rig(GetParam());
    EXPECT_EQ(RunOp(rig, p, {&experts}, false)[0], std::vector<float>(tokens, 0.0f));
  }
}

TEST_P(ExpertMatMulTest, ManyTokensOfOneExpert) {
  const Experts experts = MakeExperts(9, Type::kQ8_0, 2, 33, 64);
  Problem p = MakeProblem(10, true, 2500, 1, 2, 0, 2, 64);
  std::fill(p.ids.begin(), p.ids.end(), 1);
  Rig rig(GetParam());
  ExpectWithin(RunOp(rig, p, {&experts}, true)[0],
               PlainLoop(p, experts, true, Rounds(Type::kQ8_0, p.tokens)), "many");
}

// The CUDA backend keeps 32 MiB of products of all choices, this rank's and others', and multiplies
// an expert's rows in slices.
TEST_P(ExpertMatMulTest, MoreProductsThanASliceHolds) {
  constexpr uint32_t kTokens = 1100, kPart = 260, kTopK = 8, kCols = 32, kRows = 970;
  const Experts experts = MakeExperts(15, Type::kQ8_0, kTopK, kRows, kCols);
  const Problem p = MakeProblem(16, true, kTokens, kTopK, kTopK, 3, 2, kCols);
  Rig rig(GetParam());
  const auto batch = RunOp(rig, p, {&experts}, /*bias=*/true)[0];
  // As many as a slice holds and no fewer than are rounded alike.
  for (const uint32_t t : {0u, kTokens - kPart}) {
    const auto part = RunOp(rig, p.Tokens(t, kPart, kCols), {&experts}, true)[0];
    cpu::ExpectSameBits(part.data(), batch.data() + t * kRows, size_t{kPart} * kRows,
                        "from token " + std::to_string(t));
  }
}

TANDEM_INSTANTIATE_BACKENDS(ExpertMatMulTest);

}  // namespace
}  // namespace tandem::kernels
