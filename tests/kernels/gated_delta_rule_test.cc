#include <cmath>

#include "tests/kernels/recurrent_rows.h"

namespace tandem::kernels {
namespace {

class GatedDeltaRuleTest : public testing::TestWithParam<BackendCase> {};
TANDEM_INSTANTIATE_BACKENDS(GatedDeltaRuleTest);

constexpr float kEpsilon = 1e-6f;

struct Problem {
  uint32_t key_heads;
  uint32_t value_heads;
  uint32_t dim;
  bool strided;
  std::vector<float> rate;
  std::vector<float> bias;

  uint32_t channels() const { return (2 * key_heads + value_heads) * dim; }
  size_t state_size() const { return size_t{value_heads} * dim * dim; }
};

Problem MakeProblem(Random& random, uint32_t key_heads, uint32_t value_heads, uint32_t dim,
                    bool strided) {
  return {key_heads,
          value_heads,
          dim,
          strided,
          random.Floats(value_heads, -2, -0.1f),
          random.Floats(value_heads)};
}

// Rows of the op's inputs.
struct Rows {
  std::vector<float> qkv;
  std::vector<float> decay;
  std::vector<float> write;

  void Append(const Rows& more) {
    qkv.insert(qkv.end(), more.qkv.begin(), more.qkv.end());
    decay.insert(decay.end(), more.decay.begin(), more.decay.end());
    write.insert(write.end(), more.write.begin(), more.write.end());
  }
};

Rows MakeRows(Random& random, const Problem& problem, int rows) {
  const auto count = static_cast<size_t>(rows);
  return {random.Floats(count * problem.channels()),
          random.Floats(count * problem.value_heads, -3, 3),
          random.Floats(count * problem.value_heads, -3, 3)};
}

Rows Part(const Problem& problem, const Rows& rows, int first, int count) {
  const auto begin = static_cast<size_t>(first), n = static_cast<size_t>(count);
  return {SomeRows(rows.qkv, problem.channels(), begin, n),
          SomeRows(rows.decay, problem.value_heads, begin, n),
          SomeRows(rows.write, problem.value_heads, begin, n)};
}

std::vector<double> Normed(const float* x, size_t dim, double scale) {
  double squares = 0;
  for (size_t i = 0; i < dim; ++i) squares += double{x[i]} * x[i];
  std::vector<double> normed(x, x + dim);
  for (double& value : normed) value *= scale / std::sqrt(squares + kEpsilon);
  return normed;
}

// The formula, for one sequence from position 0 on; the state stays in double.
std::vector<float> Naive(const Problem& p, const Rows& rows) {
  const size_t dim = p.dim, count = rows.decay.size() / p.value_heads;
  std::vector<float> out(count * p.value_heads * dim);
  for (size_t head = 0; head < p.value_heads; ++head) {
    const size_t key_head = p.strided ? head % p.key_heads : head / (p.value_heads / p.key_heads);
    std::vector<double> m(dim * dim, 0.0);
    for (size_t t = 0; t < count; ++t) {
      const float* const qkv = &rows.qkv[t * p.channels()];
      const auto q = Normed(qkv + key_head * dim, dim, 1 / std::sqrt(static_cast<double>(dim)));
      const auto k = Normed(qkv + (p.key_heads + key_head) * dim, dim, 1);
      const float* const v = qkv + (2 * p.key_heads + head) * dim;
      const double x = double{rows.decay[t * p.value_heads + head]} + p.bias[head];
      const double decay = std::exp(p.rate[head] * std::log1p(std::exp(x)));
      const double write = 1 / (1 + std::exp(-double{rows.write[t * p.value_heads + head]}));
      for (size_t j = 0; j < dim; ++j) {
        double predicted = 0, sum = 0;
        for (size_t i = 0; i < dim; ++i) predicted += decay * m[i * dim + j] * k[i];
        for (size_t i = 0; i < dim; ++i) {
          m[i * dim + j] = decay * m[i * dim + j] + k[i] * write * (v[j] - predicted);
          sum += m[i * dim + j] * q[i];
        }
        out[(t * p.value_heads + head) * dim + j] = static_cast<float>(sum);
      }
    }
  }
  return out;
}

std::vector<float> RunRule(Rig& rig, const Problem& problem,
                           const std::vector<RecurrentRows>& sequences, uint32_t num_slots,
                           const Rows& rows, float* state, size_t misaligned_by = 0) {
  const size_t size = rows.decay.size() * problem.dim;
  float* const out = rig.Poisoned(size, misaligned_by);
  const GatedDeltaRuleParams params{.batch = PutBatch(rig, sequences, num_slots),
                                    .qkv = rig.Put(rows.qkv, misaligned_by),
                                    .decay = rig.Put(rows.decay),
                                    .write = rig.Put(rows.write),
                                    .decay_rate = rig.Put(problem.rate),
                                    .decay_bias = rig.Put(problem.bias),
                                    .key_heads = problem.key_heads,
                                    .value_heads = problem.value_heads,
                                    .dim = problem.dim,
                                    .strided = problem.strided,
                                    .epsilon = kEpsilon,
                                    .state = state,
                                    .out = out};
  rig.Run([&](Backend& b) { b.Encode(params); });
  return rig.Get(out, size);
}

TEST_P(GatedDeltaRuleTest, MatchesTheFormulaForAllShapes) {
  Random random(1);
  for (const uint32_t dim : {1u, 5u, 16u, 33u, 64u, 100u, 128u}) {
    for (const bool strided : {false, true}) {
      for (const int rows : {1, 2, 9}) {
        if (GetParam().slow() && dim > 33 && rows > 1) continue;
        SCOPED_TRACE(testing::Message() << "dim " << dim << ", rows " << rows << strided);
        Rig rig(GetParam());
        const Problem problem = MakeProblem(random, 2, 6, dim, strided);
        const Rows inputs = MakeRows(random, problem, rows);
        float* const state = rig.Poisoned(2 * problem.state_size(), 1);
        const auto out = RunRule(rig, problem, {{rows, rows, 1}}, 2, inputs, state, 1);
        ExpectClose(out, Naive(problem, inputs), 3e-6f);
      }
    }
  }
}

TEST_P(GatedDeltaRuleTest, ExtremeGatesStayFinite) {
  Random random(2);
  Rig rig(GetParam());
  const Problem problem = MakeProblem(random, 1, 4, 8, false);
  Rows rows = MakeRows(random, problem, 3);
  rows.decay = {-200, -30, 30, 200, 200, 30, -30, -200, 0, 0, 100, -100};
  rows.write = {200, -200, 30, -30, 0, 100, -100, 30, -30, 200, -200, 0};
  const auto out = RunRule(rig, problem, {{3, 3, 0}}, 1, rows, rig.Poisoned(problem.state_size()));
  ExpectClose(out, Naive(problem, rows), 1e-5f);
}

TEST_P(GatedDeltaRuleTest, ARowsBitsDoNotDependOnChunksAndNeighbours) {
  Random random(3);
  Rig rig(GetParam());
  constexpr int kRows = 11;
  const Problem problem = MakeProblem(random, 2, 4, 72, true);
  const Rows inputs = MakeRows(random, problem, kRows), other = MakeRows(random, problem, 2);
  const size_t cols = problem.value_heads * problem.dim;
  const auto whole =
      RunRule(rig, problem, {{kRows, kRows, 0}}, 3, inputs, rig.Poisoned(3 * problem.state_size()));
  for (const int chunk : {1, 2, 4}) {
    float* const state = rig.Poisoned(3 * problem.state_size());
    for (int begin = 0; begin < kRows; begin += chunk) {
      const int rows = std::min(chunk, kRows - begin);
      Rows both = other;
      both.Append(Part(problem, inputs, begin, rows));
      const auto out = RunRule(rig, problem, {{2, 2, 1}, {rows, begin + rows, 2}}, 3, both, state);
      ExpectSameBits(SomeRows(out, cols, 2, static_cast<size_t>(rows)),
                     SomeRows(whole, cols, static_cast<size_t>(begin), static_cast<size_t>(rows)));
    }
  }
}

TEST_P(GatedDeltaRuleTest, AStateSavedWithinAChunkContinuesInAnotherSlot) {
  Random random(5);
  Rig rig(GetParam());
  constexpr int kRows = 9, kChunk = 4;
  const Problem problem = MakeProblem(random, 2, 4, 40, true);
  const Rows inputs = MakeRows(random, problem, kRows);
  const size_t cols = problem.value_heads * problem.dim, size = problem.state_size();
  const auto whole = RunRule(rig, problem, {{kRows, kRows, 0}}, 1, inputs, rig.Poisoned(size));
  for (int at = 1; at <= kChunk; ++at) {
    SCOPED_TRACE(testing::Message() << "saved after " << at << " rows");
    float* const state = rig.Poisoned(4 * size);
    RunRule(rig, problem, {{kChunk, kChunk, 0, -1, 3, at}}, 4, Part(problem, inputs, 0, kChunk),
            state);
    const auto saved = SomeRows(rig.Get(state, 4 * size), size, 3, 1);
    const auto rest = RunRule(rig, problem, {{kRows - at, kRows, 1, 3}}, 4,
                              Part(problem, inputs, at, kRows - at), state);
    const auto first = static_cast<size_t>(at);
    ExpectSameBits(rest, SomeRows(whole, cols, first, kRows - first));
    const auto after = rig.Get(state, 4 * size);
    ExpectSameBits(SomeRows(after, size, 3, 1), saved);
    // The sequence that was saved continues too, from its own slot.
    const auto own = RunRule(rig, problem, {{kRows - kChunk, kRows, 0}}, 4,
                             Part(problem, inputs, kChunk, kRows - kChunk), state);
    ExpectSameBits(own, SomeRows(whole, cols, kChunk, kRows - kChunk));
    const auto ends = rig.Get(state, 4 * size);
    ExpectSameBits(SomeRows(ends, size, 0, 1), SomeRows(ends, size, 1, 1));
  }
}

TEST_P(GatedDeltaRuleTest, PaddingAndOtherSlotsAreUntouched) {
  Random random(4);
  Rig rig(GetParam());
  const Problem problem = MakeProblem(random, 1, 2, 17, false);
  const Rows inputs = MakeRows(random, problem, 3);
  const auto before = random.Floats(3 * problem.state_size());
  float* const state = rig.Put(before);
  const auto out = RunRule(rig, problem, {{1, 1, 1}, {1, 0, 0}, {1, 0, 0}}, 3, inputs, state);
  const size_t cols = problem.value_heads * problem.dim;
  ExpectSameBits(SomeRows(out, cols, 1, 2), std::vector<float>(2 * cols, 0.0f));
  const auto after = rig.Get(state, before.size());
  const size_t size = problem.state_size();
  ExpectSameBits(SomeRows(after, size, 0, 1), SomeRows(before, size, 0, 1));
  ExpectSameBits(SomeRows(after, size, 2, 1), SomeRows(before, size, 2, 1));
}

}  // namespace
}  // namespace tandem::kernels
