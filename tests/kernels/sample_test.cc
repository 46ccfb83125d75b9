// Sample against a naive sampler that sorts everything, its distribution, and what must not crash.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "kernels/host/philox.h"
#include "kernels/ops/not_finite.h"
#include "kernels/reference/backend.h"
#include "tests/kernels/backends.h"
#include "tests/kernels/sample_draw.h"

namespace tandem::kernels {
namespace {

class SampleTest : public testing::TestWithParam<BackendCase> {};
TANDEM_INSTANTIATE_BACKENDS(SampleTest);

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// How many draws a test takes: fewer where every thread of a row's block is played one by one.
size_t Draws(const BackendCase& c, size_t wanted, size_t few) {
  return c.kernels == "emulated" ? few : wanted;
}

std::vector<LogitAdjustment> Bans(const std::vector<int32_t>& ids) {
  std::vector<LogitAdjustment> bans;
  for (const int32_t id : ids) bans.push_back({.id = id, .bias = -kInf});
  return bans;
}

// One row per position: the same parameters, other random numbers.
std::vector<SamplingRow> Positions(SamplingRow row, size_t count) {
  std::vector<SamplingRow> rows(count, row);
  for (size_t i = 0; i < count; ++i) rows[i].position = i;
  return rows;
}

// Probability of every id after temperature, min_p, top_k, top_p, each over what the one before
// left.
std::vector<double> NaiveProbabilities(const std::vector<float>& logits, const SamplingRow& row,
                                       const std::set<int32_t>& banned = {}) {
  struct Candidate {
    double weight;
    size_t id;
  };
  std::vector<Candidate> left;
  double largest = -kInf;
  for (size_t id = 0; id < logits.size(); ++id) {
    if (banned.count(static_cast<int32_t>(id)) == 0)
      largest = std::max<double>(largest, logits[id]);
  }
  for (size_t id = 0; id < logits.size(); ++id) {
    if (banned.count(static_cast<int32_t>(id)) != 0) continue;
    const double weight = std::exp((logits[id] - largest) / row.temperature);
    if (weight >= row.min_p) left.push_back({weight, id});
  }
  std::stable_sort(left.begin(), left.end(), [](auto a, auto b) { return a.weight > b.weight; });
  if (row.top_k > 0 && left.size() > static_cast<size_t>(row.top_k))
    left.resize(static_cast<size_t>(row.top_k));
  const auto sum = [&] {
    double total = 0;
    for (const Candidate& c : left) total += c.weight;
    return total;
  };
  if (row.top_p < 1) {
    const double target = row.top_p * sum();
    double reached = 0;
    size_t keep = 0;
    while (keep < left.size() && (keep == 0 || reached < target)) reached += left[keep++].weight;
    left.resize(keep);
  }
  std::vector<double> p(logits.size(), 0.0);
  const double total = sum();
  for (const Candidate& c : left) p[c.id] = c.weight / total;
  return p;
}

// Pearson's statistic of draws against probabilities; draws of probability zero fail the test.
double ChiSquare(const std::vector<int32_t>& draws, const std::vector<double>& p) {
  std::vector<double> seen(p.size(), 0.0);
  for (const int32_t id : draws) seen[static_cast<size_t>(id)] += 1;
  double sum = 0;
  for (size_t id = 0; id < p.size(); ++id) {
    if (p[id] == 0) {
      EXPECT_EQ(seen[id], 0) << "id " << id << " was filtered out";
      continue;
    }
    const double expected = p[id] * static_cast<double>(draws.size());
    sum += (seen[id] - expected) * (seen[id] - expected) / expected;
  }
  return sum;
}

TEST_P(SampleTest, FollowsTheDistributionOfEveryFilter) {
  Rig rig(GetParam());
  Random random(1);
  const auto logits = random.Floats(12, -2, 2);
  std::vector<SamplingRow> wishes(7);
  wishes[1].temperature = 0.6f;
  wishes[2].temperature = 1.7f;
  wishes[3].top_k = 4;
  wishes[4].top_p = 0.7f;
  wishes[5].min_p = 0.2f;
  wishes[6] = {.temperature = 1.3f, .top_p = 0.8f, .min_p = 0.05f, .top_k = 6};
  for (size_t i = 0; i < wishes.size(); ++i) {
    SCOPED_TRACE(i);
    wishes[i].seed = 100 + i;
    const auto draws = Draw(rig, logits, 12, Positions(wishes[i], Draws(GetParam(), 8000, 500)));
    // The 99.99% point for 11 degrees of freedom; seeds are fixed.
    EXPECT_LT(ChiSquare(draws, NaiveProbabilities(logits, wishes[i])), 37.4);
  }
}

// A large vocabulary: everything that can be drawn is, nothing else ever.
TEST_P(SampleTest, FiltersKeepWhatASortKeeps) {
  Rig rig(GetParam());
  constexpr uint32_t kVocab = 3001;
  Random random(2);
  for (int trial = 0; trial < 12; ++trial) {
    auto logits = random.Floats(kVocab, -8, 8);
    for (int i = 0; i < 500; ++i)
      logits[static_cast<size_t>(random.Int(0, kVocab - 1))] = 5.0f;  // ties
    SamplingRow row;
    row.seed = static_cast<uint64_t>(trial);
    row.temperature = random.Uniform(0.3f, 3);
    if (trial % 2 == 0) row.top_k = random.Int(1, 900);
    if (trial % 3 != 0) row.top_p = random.Uniform(0.05f, 0.99f);
    if (trial % 4 == 0) row.min_p = random.Uniform(0.0001f, 0.3f);
    SCOPED_TRACE(testing::Message()
                 << "top_k " << row.top_k << " top_p " << row.top_p << " min_p " << row.min_p);
    const auto p = NaiveProbabilities(logits, row);
    for (const int32_t id : Draw(rig, logits, kVocab, Positions(row, Draws(GetParam(), 300, 6)))) {
      ASSERT_GT(p[static_cast<size_t>(id)], 0.0)
          << "id " << id << " logit " << logits[static_cast<size_t>(id)];
    }
  }
}

// The same seed gives the same text wherever it runs.
TEST_P(SampleTest, DrawsTheIdThatTheReferenceDraws) {
  Rig rig(GetParam());
  Rig reference({"reference", 1}, reference::MakeReferenceBackend(1));
  Random random(5);
  for (const uint32_t vocab : {31u, 33u, 2048u, 5003u}) {
    const auto logits = random.Floats(vocab, -9, 9);
    std::vector<SamplingRow> rows(Draws(GetParam(), 200, 24));
    for (size_t i = 0; i < rows.size(); ++i) {
      rows[i].seed = vocab;
      rows[i].position = i;
      rows[i].temperature = random.Uniform(0.2f, 4);
      if (i % 2 == 0) rows[i].top_k = random.Int(1, 2 * static_cast<int>(vocab));
      if (i % 3 != 0) rows[i].top_p = random.Uniform(0.01f, 1);
      if (i % 4 == 0) rows[i].min_p = random.Uniform(0, 0.2f);
      if (i % 3 == 1) rows[i].typical_p = random.Uniform(0.05f, 1);
      if (i % 5 < 2) rows[i].xtc_probability = 0.6f;
      if (i % 5 == 1) rows[i].xtc_threshold = random.Uniform(0, 0.3f);
      rows[i].adjustments_end = i % 2 == 1 ? 30 : 0;
    }
    std::vector<LogitAdjustment> adjustments;
    for (int32_t id = 0; id < 30; ++id) {
      adjustments.push_back({id, random.Uniform(-2, 2), random.Uniform(0.5f, 2), id % 3 * 0.7f});
    }
    EXPECT_EQ(Draw(rig, logits, vocab, rows, adjustments),
              Draw(reference, logits, vocab, rows, adjustments))
        << vocab;
  }
}

// Every time, never, and as often as it should; independent of which token is drawn.
TEST_P(SampleTest, XtcHasItsOwnRandomNumbers) {
  Rig rig(GetParam());
  const std::vector<float> logits = {3, 3, 0, 0};
  SamplingRow row{.seed = 5, .xtc_probability = 0.5f, .xtc_threshold = 0.25f};
  const auto rows = Positions(row, Draws(GetParam(), 4000, 300));
  const auto draws = Draw(rig, logits, 4, rows);
  const SamplingRow plain{.seed = 5};
  const auto unfiltered = Draw(rig, logits, 4, Positions(plain, rows.size()));
  for (size_t i = 0; i < rows.size(); ++i) {
    if (host::UniformDraw(5, i, host::RandomStream::kXtc) < 0.5) {
      EXPECT_NE(draws[i], 0) << i;
    } else {
      EXPECT_EQ(draws[i], unfiltered[i]) << i;
    }
  }
  row.xtc_probability = 0;
  EXPECT_EQ(Draw(rig, logits, 4, Positions(row, 100)), Draw(rig, logits, 4, Positions(plain, 100)));
  // Only one id is that likely.
  row.xtc_probability = 1;
  row.xtc_threshold = 0.6f;
  EXPECT_EQ(Draw(rig, logits, 4, Positions(row, 100)), Draw(rig, logits, 4, Positions(plain, 100)));
}

TEST_P(SampleTest, AdjustmentsMoveTheLargest) {
  Rig rig(GetParam());
  const std::vector<float> logits = {-1, 4, 3, -2};
  const auto greedy = [&](const LogitAdjustment& one) {
    SamplingRow row{.temperature = 0, .adjustments_end = 1};
    return Draw(rig, logits, 4, {row}, {one})[0];
  };
  EXPECT_EQ(greedy({.id = 3, .bias = 6.5f}), 3);
  EXPECT_EQ(greedy({.id = 3, .bias = 5.5f}), 1);
  EXPECT_EQ(greedy({.id = 1, .repetition = 1.25f}), 1);
  EXPECT_EQ(greedy({.id = 1, .repetition = 1.5f}), 2);
  EXPECT_EQ(greedy({.id = 1, .penalty = 1.25f}), 2);
  EXPECT_EQ(greedy({.id = 0, .repetition = 0.1f}), 1);
  // Bias, then repetition, then penalty: (-2 + 8) / 1.25 - 0.5 = 4.3, in any other order below 4.
  EXPECT_EQ(greedy({.id = 3, .bias = 8, .repetition = 1.25f, .penalty = 0.5f}), 3);
  // What would be infinite is the largest float, and no error.
  const std::vector<float> huge = {3e38f, 3e38f};
  SamplingRow row{.temperature = 0, .adjustments_end = 1};
  EXPECT_EQ(Draw(rig, huge, 2, {row}, {{.id = 1, .repetition = 0.01f}})[0], 1);
}

TEST_P(SampleTest, KeepsTheLowestIdsAmongTies) {
  Rig rig(GetParam());
  const std::vector<float> logits(500, 1.0f);
  SamplingRow top_k, top_p;
  top_k.top_k = 3;
  top_p.top_p = 0.01f;  // five of five hundred
  const auto k = Draw(rig, logits, 500, Positions(top_k, Draws(GetParam(), 300, 30)));
  EXPECT_EQ(std::set<int32_t>(k.begin(), k.end()), (std::set<int32_t>{0, 1, 2}));
  const auto p = Draw(rig, logits, 500, Positions(top_p, Draws(GetParam(), 300, 30)));
  EXPECT_EQ(std::set<int32_t>(p.begin(), p.end()), (std::set<int32_t>{0, 1, 2, 3, 4}));
}

TEST_P(SampleTest, GreedyTakesTheLowestIdOfTheLargest) {
  Rig rig(GetParam());
  Random random(3);
  SamplingRow greedy;
  greedy.temperature = 0;
  greedy.top_p = 0.1f;  // filters never matter to it
  for (const uint32_t vocab : {1u, 2u, 15u, 16u, 17u, 1000u}) {
    auto logits = random.Floats(vocab);
    const auto a = static_cast<uint32_t>(random.Int(0, static_cast<int>(vocab) - 1));
    const auto b = static_cast<uint32_t>(random.Int(0, static_cast<int>(vocab) - 1));
    logits[a] = logits[b] = 2;
    EXPECT_EQ(Draw(rig, logits, vocab, {greedy})[0], static_cast<int32_t>(std::min(a, b)));
  }
}

TEST_P(SampleTest, ReadsTheRowThatIsAsked) {
  Rig rig(GetParam());
  std::vector<float> logits(3 * 5, 0.0f);
  for (size_t row = 0; row < 3; ++row) logits[row * 5 + row + 1] = 9;
  std::vector<SamplingRow> rows(4);
  const std::vector<int32_t> wanted = {2, 0, 1, 2};
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].temperature = 0;
    rows[i].logits_row = wanted[i];
  }
  EXPECT_EQ(Draw(rig, logits, 5, rows), (std::vector<int32_t>{3, 1, 2, 3}));
}

TEST_P(SampleTest, BannedIdsAreNeverDrawn) {
  Rig rig(GetParam());
  const std::vector<float> logits = {1, 5, 4, 3, 2};
  const auto banned = Bans({0, 1, 2, 99, -4});  // ids outside the vocabulary are ignored
  SamplingRow row;
  row.adjustments_begin = 1;
  row.adjustments_end = 5;
  row.seed = 5;
  const auto draws = Draw(rig, logits, 5, Positions(row, Draws(GetParam(), 5000, 300)), banned);
  EXPECT_LT(ChiSquare(draws, NaiveProbabilities(logits, row, {1, 2})), 20.0);
  row.temperature = 0;
  EXPECT_EQ(Draw(rig, logits, 5, {row}, banned)[0], 3);
  // Everything banned but one, and everything.
  const auto most = Bans({0, 1, 2, 3, 4});
  row.adjustments_begin = 0;
  row.adjustments_end = 4;
  EXPECT_EQ(Draw(rig, logits, 5, {row}, most)[0], 4);
  row.adjustments_end = 5;
  for (const float temperature : {0.0f, 1.0f}) {
    row.temperature = temperature;
    EXPECT_EQ(Draw(rig, logits, 5, {row}, most)[0], 0);
  }
}

std::vector<uint32_t> MaskOf(const std::vector<int32_t>& ids, uint32_t vocab) {
  std::vector<uint32_t> mask((vocab + 31) / 32);
  for (const int32_t id : ids) mask[static_cast<size_t>(id) / 32] |= 1u << (id % 32);
  return mask;
}

// What a mask lacks is banned: the ids are those that are drawn with a ban of each.
TEST_P(SampleTest, AMaskBansWhatItLacks) {
  Rig rig(GetParam());
  Random random(6);
  for (const uint32_t vocab : {1u, 31u, 32u, 33u, 700u, 5003u}) {
    SCOPED_TRACE(vocab);
    const auto logits = random.Floats(vocab, -4, 4);
    std::vector<int32_t> allowed, lacking;
    for (int32_t id = 0; id < static_cast<int32_t>(vocab); ++id) {
      (id % 50 == 0 || id / 64 % 5 == 3 ? allowed : lacking).push_back(id);
    }
    std::vector<SamplingRow> masked, banned;
    for (SamplingRow row :
         Positions({.temperature = 0.8f, .seed = vocab}, Draws(GetParam(), 100, 12))) {
      if (row.position % 4 == 1) row.temperature = 0;
      if (row.position % 4 == 2) row.top_p = 0.8f;
      if (row.position % 4 == 3) row.top_k = 5;
      row.adjustments_end = static_cast<int32_t>(lacking.size());
      banned.push_back(row);
      row.adjustments_end = 0;
      row.mask_begin = 1;
      masked.push_back(row);
    }
    std::vector<uint32_t> masks = MaskOf(allowed, vocab);
    masks.insert(masks.begin(), 0);
    EXPECT_EQ(Draw(rig, logits, vocab, masked, {}, masks),
              Draw(rig, logits, vocab, banned, Bans(lacking)));
  }
}

// Both count; and with nothing left it is the lowest id of the mask that is not banned.
TEST_P(SampleTest, AMaskBesideAdjustments) {
  Rig rig(GetParam());
  const std::vector<float> logits = {1, 5, 4, 3, -kInf, -kInf};
  SamplingRow row{.temperature = 0, .adjustments_end = 1, .mask_begin = 0};
  const auto draw = [&](const LogitAdjustment& one, const std::vector<int32_t>& allowed) {
    return Draw(rig, logits, 6, {row}, {one}, MaskOf(allowed, 6))[0];
  };
  EXPECT_EQ(draw({.id = 3, .bias = 1.5f}, {0, 2, 3}), 3);
  EXPECT_EQ(draw({.id = 3, .bias = 0.5f}, {0, 2, 3}), 2);
  EXPECT_EQ(draw({.id = 1, .bias = 100}, {0, 2, 3}), 2);
  EXPECT_EQ(draw({.id = 2, .bias = -kInf}, {0, 2}), 0);
  EXPECT_EQ(draw({.id = 4, .bias = -kInf}, {4, 5}), 5);
  EXPECT_EQ(draw({.id = 2, .bias = 0}, {4, 5}), 4);
  row.temperature = 1;
  EXPECT_EQ(draw({.id = 4, .bias = -kInf}, {4, 5}), 5);
}

// A ban is no reason to say so: the logits are sound.
TEST_P(SampleTest, BansDoNotMakeLogitsNotFinite) {
  Rig rig(GetParam());
  for (const float temperature : {0.0f, 1.0f}) {
    SamplingRow row;
    row.temperature = temperature;
    row.adjustments_end = 2;
    EXPECT_EQ(Draw(rig, {-kInf, 1}, 2, {row}, Bans({1, 0}))[0], 0);
    EXPECT_EQ(Draw(rig, {kNan, kNan}, 2, {row}, Bans({1, 0}))[0], kNotFinite);
    EXPECT_EQ(Draw(rig, {1, 2, kInf}, 3, {row}, Bans({1, 2}))[0], kNotFinite);
  }
}

TEST_P(SampleTest, LogitsThatAreNotFiniteGiveNoId) {
  Rig rig(GetParam());
  std::vector<SamplingRow> wishes(5);
  wishes[0].temperature = 0;
  wishes[2].top_k = 2;
  wishes[3].top_p = 0.5f;
  wishes[4].min_p = 0.5f;
  struct Case {
    std::vector<float> logits;
    int32_t drawn;
  };
  const std::vector<Case> cases = {
      {{kNan, kNan, kNan}, kNotFinite},
      {{-kInf, kNan, -kInf}, kNotFinite},
      {{1, 2, kNan}, kNotFinite},
      {{0, kInf, 3}, kNotFinite},
      {{-kInf, -kInf, -kInf}, kNotFinite},
      {{-kInf, -kInf, -50}, 2},
      {{3e38f, -3e38f, 0}, 0},
  };
  for (size_t c = 0; c < cases.size(); ++c) {
    for (const SamplingRow& wish : wishes) {
      for (const int32_t id : Draw(rig, cases[c].logits, 3, Positions(wish, 20))) {
        EXPECT_EQ(id, cases[c].drawn) << "case " << c;
      }
    }
  }
  // Parameters at their limits.
  for (const float temperature : {1e-30f, 1e-45f, 1e30f}) {
    for (const float top_p : {0.0f, 1e-9f, 0.9999999f, 1.0f}) {
      SamplingRow row;
      row.temperature = temperature;
      row.top_p = top_p;
      row.min_p = 1;
      for (const int32_t id : Draw(rig, {1, 2, 3, 2.5f}, 4, Positions(row, 20))) {
        EXPECT_TRUE(id >= 0 && id < 4);
      }
    }
  }
}

TEST_P(SampleTest, ADrawDependsOnlyOnSeedAndPosition) {
  Rig rig(GetParam());
  Random random(4);
  const auto logits = random.Floats(2 * 100, -1, 1);
  SamplingRow row;
  row.seed = 77;
  auto rows = Positions(row, 50);
  for (size_t i = 0; i < rows.size(); ++i) rows[i].logits_row = static_cast<int32_t>(i % 2);
  const auto together = Draw(rig, logits, 100, rows);
  for (size_t i = 0; i < rows.size(); ++i)
    EXPECT_EQ(Draw(rig, logits, 100, {rows[i]})[0], together[i]);
  for (SamplingRow& r : rows) r.seed = 78;
  EXPECT_NE(Draw(rig, logits, 100, rows), together);
}

}  // namespace
}  // namespace tandem::kernels
