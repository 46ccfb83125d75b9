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
#include "tests/kernels/expert_problem.h"
#include "tests/kernels/matmul_problem.h"

namespace tandem::kernels {
namespace {

using cpu::Matrix;
using cpu::RandomFloats;
using tensor::Type;

// The op's definition, with `multiply(choice)` for the product of a choice.
template <typename Multiply>
std::vector<float> Combine(const ExpertProblem& p, uint32_t rows, Multiply multiply) {
  std::vector<float> y((p.down() ? p.tokens : p.choices()) * rows, p.down() ? 0.0f : kExpertsLeft);
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
std::vector<float> ByMatMul(Rig& rig, const ExpertProblem& p, const Experts& experts, bool bias) {
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

Bounds PlainLoop(const ExpertProblem& p, const Experts& experts, bool bias, Rounding rounds) {
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
      for (float& value : w) value *= experts.scale(static_cast<size_t>(p.ids[choice]));
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
  // `least` columns or a little more, whole blocks.
  static uint32_t Cols(Type type, uint32_t least = 96) {
    const uint32_t block = tensor::Traits(type).block_values;
    return (least + block - 1) / block * block;
  }
};

TEST_P(ExpertMatMulTest, EachChoiceHasTheBitsOfItsExpertsMatMul) {
  for (const Type type : cpu::Types()) {
    const uint32_t cols = Cols(type);
    const Experts gate = MakeExperts(1, type, 6, 21, cols);
    const Experts up = MakeExperts(2, Type::kQ8_0, 6, 40, Cols(type));
    for (const uint32_t tokens : {1u, 5u, 50u}) {
      for (const bool down : {false, true}) {
        const ExpertProblem p = MakeExpertProblem(tokens, down, tokens, 3, 6, 1, 4, cols);
        Rig rig(GetParam());
        const std::string what = std::string(tensor::Name(type)) + (down ? " down " : " up ") +
                                 std::to_string(tokens) + " tokens";
        const auto projections = down ? std::vector{&gate} : std::vector{&gate, &up};
        const auto y = RunExperts(rig, p, projections, /*bias=*/true);
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

// A scale of each expert. On cuda they are in packs, which only one type has a place for.
TEST_P(ExpertMatMulTest, ScaledExperts) {
  const std::vector<Type> types =
      cuda() ? std::vector{Type::kNVFP4}
             : std::vector{Type::kNVFP4, Type::kF32, Type::kBF16, Type::kQ8_0, Type::kQ4_K};
  for (const Type type : types) {
    const uint32_t cols = Cols(type, 300);
    Experts scaled = MakeExperts(21, type, 6, 37, cols);
    scaled.scales = Random(23).Floats(6, 0.1f, 2.0f);
    const Experts& gate = scaled;
    const Experts up = MakeExperts(22, type, 6, 40, cols);
    for (const uint32_t tokens : {1u, 5u, 20u, 300u}) {
      for (const bool down : {false, true}) {
        const ExpertProblem p = MakeExpertProblem(tokens, down, tokens, 3, 6, 2, 3, cols);
        Rig rig(GetParam());
        const std::string what = std::string(tensor::Name(type)) + (down ? " down " : " up ") +
                                 std::to_string(tokens) + " tokens";
        const auto projections = down ? std::vector{&gate} : std::vector{&gate, &up};
        const auto y = RunExperts(rig, p, projections, /*bias=*/true);
        for (size_t i = 0; i < projections.size(); ++i) {
          ExpectWithin(y[i], PlainLoop(p, *projections[i], true, Rounds(type, tokens)), what);
          if (cuda() || tokens > 20) continue;
          cpu::ExpectSameBits(y[i], ByMatMul(rig, p, *projections[i], true), what);
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
      const ExpertProblem p = MakeExpertProblem(4, down, 90, 2, 4, 0, 4, cols);
      Rig rig(GetParam());
      BackendCase other = GetParam();
      other.threads = 3 - other.threads;
      Rig other_rig(other);
      const auto batch = RunExperts(rig, p, {&experts}, false)[0];
      cpu::ExpectSameBits(RunExperts(other_rig, p, {&experts}, false)[0], batch, "threads");
      const size_t token_values = batch.size() / p.tokens;
      if (cuda())
        ExpectWithin(batch, PlainLoop(p, experts, false, Rounds(type, p.tokens)), "batch");
      for (uint32_t t = 0; t < p.tokens; t += cuda() ? 40 : 7) {
        const ExpertProblem one = p.Token(t, cols);
        const auto alone = RunExperts(rig, one, {&experts}, false)[0];
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
    const uint32_t cols = Cols(type, 160), rows = 139;
    const Experts experts = MakeExperts(17, type, 12, rows, cols);
    for (const bool down : {false, true}) {
      ExpertProblem p = MakeExpertProblem(18, down, kTokens, kTopK, 12, 0, 12, cols);
      for (uint32_t t = 0; t < kTokens; ++t) p.ids[t * kTopK] = t < 140 ? 1 : p.ids[t * kTopK];
      Rig rig(GetParam());
      const auto all = RunExperts(rig, p, {&experts}, /*bias=*/true)[0];
      const std::string what = std::string(tensor::Name(type)) + (down ? " down" : " up");
      ExpectWithin(all, PlainLoop(p, experts, true, Rounds(type, kTokens)), what);
      // Fewer, some of which this rank has no expert for.
      ExpertProblem few = p.Tokens(0, kMost, cols);
      for (uint32_t t = kMost / 2; t < kMost; ++t) few.ids[t * kTopK] = kNoExpert;
      const auto some = RunExperts(rig, few, {&experts}, true)[0];
      const size_t token_values = all.size() / kTokens;
      cpu::ExpectSameBits(some.data(), all.data(), kMost / 2 * token_values, what);
    }
  }
}

// Experts that 33, 9, 8, 1, 0, 4, 5 and 17 of 40 tokens choose, beside choices of other ranks'
// experts and of none; the last token has only those.
ExpertProblem UnevenProblem(bool down, uint32_t cols) {
  ExpertProblem p = MakeExpertProblem(13, down, 40, 3, 10, 1, 8, cols);
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
      ExpertProblem p = UnevenProblem(down, kCount);
      // With half of the experts tiles are wider.
      for (const uint32_t count : {8u, 4u}) {
        p.count = count;
        const auto batch = RunExperts(rig, p, {&experts}, /*bias=*/true, kBegin, kCount)[0];
        const size_t token_values = batch.size() / p.tokens;
        for (const uint32_t t : {0u, 4u, 8u, 16u, 17u, 25u, 32u, 39u}) {
          const auto alone =
              RunExperts(rig, p.Token(t, kCount), {&experts}, true, kBegin, kCount)[0];
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
                                     {Type::kNVFP4, 9u},
                                     {Type::kIQ4_XS, 9u}}) {
    const uint32_t cols = 512, rows = 18;
    const Experts experts = MakeExperts(5, type, 5, rows, cols);
    const ExpertProblem p = MakeExpertProblem(6, true, tokens, 2, 5, 0, 5, cols);
    const Bounds whole = PlainLoop(p, experts, false, Rounds(type, tokens));
    Rig rig(GetParam());
    const auto add = [](std::vector<float>* sum, const std::vector<float>& more) {
      for (size_t i = 0; i < sum->size(); ++i) (*sum)[i] += more[i];
    };
    ExpertProblem part = p;
    part.count = 2;
    std::vector<float> by_experts = RunExperts(rig, part, {&experts}, false)[0];
    part.begin = 2;
    part.count = 3;
    add(&by_experts, RunExperts(rig, part, {&experts}, false)[0]);
    ExpectWithin(by_experts, whole, "experts");

    std::vector<float> by_columns(whole.values.size(), 0.0f);
    for (const auto& [begin, end] : {std::pair{0u, 170u}, {170u, 300u}, {300u, 512u}}) {
      ExpertProblem cut = p;
      cut.x.clear();
      for (size_t row = 0; row < p.choices(); ++row) {
        const auto first = p.x.begin() + static_cast<ptrdiff_t>(row * cols);
        cut.x.insert(cut.x.end(), first + begin, first + end);
      }
      add(&by_columns, RunExperts(rig, cut, {&experts}, false, begin, end - begin)[0]);
    }
    ExpectWithin(by_columns, whole, "columns");
  }
}

TEST_P(ExpertMatMulTest, TokensWithoutAnExpertHereAreZerosOrUnchanged) {
  const Experts experts = MakeExperts(7, Type::kQ4_0, 8, 17, 64);
  for (const uint32_t tokens : {6u, 12u}) {
    for (const bool down : {false, true}) {
      ExpertProblem p = MakeExpertProblem(8, down, tokens, 2, 8, 4, 2, 64);
      for (size_t i = 0; i < p.ids.size(); ++i) p.ids[i] = i % 2 == 0 ? 3 : 6;
      Rig rig(GetParam());
      const std::vector<float> y = RunExperts(rig, p, {&experts}, true)[0];
      for (const float value : y) EXPECT_EQ(value, down ? 0.0f : kExpertsLeft);
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
    ExpertProblem p = MakeExpertProblem(12, true, tokens, 3, 3, 0, 3, kCols);
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
    EXPECT_EQ(RunExperts(rig, p, {&experts}, false)[0], std::vector<float>(tokens, 0.0f));
  }
}

TEST_P(ExpertMatMulTest, ManyTokensOfOneExpert) {
  const Experts experts = MakeExperts(9, Type::kQ8_0, 2, 33, 64);
  ExpertProblem p = MakeExpertProblem(10, true, 2500, 1, 2, 0, 2, 64);
  std::fill(p.ids.begin(), p.ids.end(), 1);
  Rig rig(GetParam());
  ExpectWithin(RunExperts(rig, p, {&experts}, true)[0],
               PlainLoop(p, experts, true, Rounds(Type::kQ8_0, p.tokens)), "many");
}

// The CUDA backend keeps 32 MiB of products of all choices, this rank's and others', and multiplies
// an expert's rows in slices.
TEST_P(ExpertMatMulTest, MoreProductsThanASliceHolds) {
  constexpr uint32_t kTokens = 1100, kPart = 260, kTopK = 8, kCols = 32, kRows = 970;
  const Experts experts = MakeExperts(15, Type::kQ8_0, kTopK, kRows, kCols);
  const ExpertProblem p = MakeExpertProblem(16, true, kTokens, kTopK, kTopK, 3, 2, kCols);
  Rig rig(GetParam());
  const auto batch = RunExperts(rig, p, {&experts}, /*bias=*/true)[0];
  // As many as a slice holds and no fewer than are rounded alike.
  for (const uint32_t t : {0u, kTokens - kPart}) {
    const auto part = RunExperts(rig, p.Tokens(t, kPart, kCols), {&experts}, true)[0];
    cpu::ExpectSameBits(part.data(), batch.data() + t * kRows, size_t{kPart} * kRows,
                        "from token " + std::to_string(t));
  }
}

TANDEM_INSTANTIATE_BACKENDS(ExpertMatMulTest);

}  // namespace
}  // namespace tandem::kernels
