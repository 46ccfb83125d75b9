#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "tests/kernels/backends.h"

namespace tandem::kernels {
namespace {

class RouteTest : public testing::TestWithParam<BackendCase> {};
TANDEM_INSTANTIATE_BACKENDS(RouteTest);

struct Rule {
  uint32_t experts, top_k;
  bool sigmoid = false, normalize = false;
  float scale = 1;
  std::vector<float> bias = {};
  uint32_t groups = 1, groups_kept = 1, group_top = 1;
  std::vector<float> expert_scale = {};
};

struct Choice {
  std::vector<int32_t> ids;
  std::vector<float> weights;
};

Choice Route(const BackendCase& backend, const Rule& rule, const std::vector<float>& logits,
             const std::vector<int32_t>& lengths = {}) {
  Rig rig(backend);
  RouteParams p{};
  p.logits = rig.Put(logits);
  p.lengths = lengths.empty() ? nullptr : rig.Put(lengths);
  p.tokens = static_cast<uint32_t>(logits.size()) / rule.experts;
  p.experts = rule.experts;
  p.top_k = rule.top_k;
  p.sigmoid = rule.sigmoid;
  p.normalize = rule.normalize;
  p.scale = rule.scale;
  p.selection_bias = rule.bias.empty() ? nullptr : rig.Put(rule.bias);
  p.expert_scale = rule.expert_scale.empty() ? nullptr : rig.Put(rule.expert_scale);
  p.groups = rule.groups;
  p.groups_kept = rule.groups_kept;
  p.group_top = rule.group_top;
  const size_t count = size_t{p.tokens} * p.top_k;
  p.ids = rig.Put(std::vector<int32_t>(count, -1));
  p.weights = rig.Poisoned(count);
  rig.Run([&](Backend& b) { b.Encode(p); });
  return {rig.Get(p.ids, count), rig.Get(p.weights, count)};
}

// By sorting, in double.
void NaiveRoute(const Rule& rule, const float* logits, Choice* out) {
  std::vector<double> scores(rule.experts), choice(rule.experts);
  double sum = 0;
  for (uint32_t e = 0; e < rule.experts; ++e) {
    scores[e] = std::exp(double{logits[e]});
    if (rule.sigmoid) scores[e] /= 1 + scores[e];
    sum += scores[e];
  }
  for (uint32_t e = 0; e < rule.experts; ++e) {
    if (!rule.sigmoid) scores[e] /= sum;
    choice[e] = scores[e] + (rule.bias.empty() ? 0 : rule.bias[e]);
  }
  const uint32_t size = rule.experts / rule.groups;
  std::vector<std::pair<double, uint32_t>> groups;
  for (uint32_t g = 0; g < rule.groups; ++g) {
    std::vector<double> members(choice.begin() + g * size, choice.begin() + (g + 1) * size);
    std::sort(members.rbegin(), members.rend());
    groups.emplace_back(-std::accumulate(members.begin(), members.begin() + rule.group_top, 0.0),
                        g);
  }
  std::sort(groups.begin(), groups.end());
  std::vector<std::pair<double, uint32_t>> order;
  for (uint32_t i = 0; i < rule.groups_kept; ++i) {
    for (uint32_t e = groups[i].second * size; e < (groups[i].second + 1) * size; ++e)
      order.emplace_back(-choice[e], e);
  }
  std::sort(order.begin(), order.end());
  double taken = 0;
  for (uint32_t k = 0; k < rule.top_k; ++k) taken += scores[order[k].second];
  for (uint32_t k = 0; k < rule.top_k; ++k) {
    const uint32_t expert = order[k].second;
    const double own = rule.expert_scale.empty() ? 1.0 : rule.expert_scale[expert];
    out->ids.push_back(static_cast<int32_t>(expert));
    out->weights.push_back(
        static_cast<float>(scores[expert] * rule.scale * own / (rule.normalize ? taken : 1.0)));
  }
}

TEST_P(RouteTest, MatchesTheFormula) {
  Random random(1);
  std::vector<Rule> rules = {{8, 2}, {8, 2, false, true},        {60, 4}, {1, 1},
                             {5, 5}, {128, 8, false, true, 2.5f}};
  rules.push_back({64, 6, true, true, 2.5f, random.Floats(64), 8, 4, 2});
  rules.push_back({256, 8, true, true, 2.5f, random.Floats(256), 8, 4, 2});
  rules.push_back({32, 4, true, false, 1, random.Floats(32)});
  rules.push_back({32, 6, false, false, 16, {}, 4, 2, 1});  // DeepSeek-V2's: the groups' largest
  rules.push_back({70, 40, false, true, 1, {}, 1, 1, 1, random.Floats(70)});  // Gemma 4's scales
  for (const Rule& rule : rules) {
    SCOPED_TRACE(testing::Message() << rule.top_k << " of " << rule.experts << ", sigmoid "
                                    << rule.sigmoid << ", groups " << rule.groups);
    const auto logits = random.Floats(size_t{37} * rule.experts, -4, 4);
    Choice expected;
    for (size_t t = 0; t < 37; ++t) NaiveRoute(rule, &logits[t * rule.experts], &expected);
    const Choice actual = Route(GetParam(), rule, logits);
    EXPECT_EQ(actual.ids, expected.ids);
    ExpectClose(actual.weights, expected.weights, 2e-6f);
  }
}

// Experts 0 to 7 in groups of two; the sums of both scores decide, so the largest score of all, in
// group 0, is not taken.
TEST_P(RouteTest, AGroupCountsByItsBestExpertsTogether) {
  const Rule rule{8, 2, true, true, 1, {}, 4, 2, 2};
  const Choice choice = Route(GetParam(), rule, {5, -5, 1, 1, 2, 2, -9, 0});
  EXPECT_EQ(choice.ids, (std::vector<int32_t>{4, 5}));
  ExpectClose(choice.weights, {0.5f, 0.5f}, 1e-6f);
}

// The bias moves the choice, never the weight.
TEST_P(RouteTest, TheSelectionBiasIsNotPartOfTheWeight) {
  const Rule rule{4, 2, true, false, 1, {0, 0, 10, 0}};
  const Choice choice = Route(GetParam(), rule, {0, 1, -1, 0.5f});
  EXPECT_EQ(choice.ids, (std::vector<int32_t>{2, 1}));
  ExpectClose(choice.weights, {1 / (1 + std::exp(1.0f)), 1 / (1 + std::exp(-1.0f))}, 1e-6f);
}

TEST_P(RouteTest, TheLowestIdWinsATie) {
  EXPECT_EQ(Route(GetParam(), {6, 3}, {1, 2, 2, 1, 2, 2}).ids, (std::vector<int32_t>{1, 2, 4}));
  EXPECT_EQ(Route(GetParam(), {6, 6}, std::vector<float>(6, 0.0f)).ids,
            (std::vector<int32_t>{0, 1, 2, 3, 4, 5}));
  const Rule groups{6, 2, true, false, 1, {}, 3, 2, 2};
  EXPECT_EQ(Route(GetParam(), groups, std::vector<float>(6, 0.0f)).ids,
            (std::vector<int32_t>{0, 1}));
}

// Also if one lane of a warp holds several experts.
TEST_P(RouteTest, TheLowestIdWinsATieOfManyExperts) {
  const Choice choice = Route(GetParam(), {70, 40}, std::vector<float>(70, 0.5f));
  std::vector<int32_t> first(40);
  std::iota(first.begin(), first.end(), 0);
  EXPECT_EQ(choice.ids, first);
}

TEST_P(RouteTest, LargeLogitsStayFinite) {
  const Choice choice = Route(GetParam(), {4, 2}, {1e30f, -1e30f, 1000, 3});
  EXPECT_EQ(choice.ids, (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(choice.weights, (std::vector<float>{1, 0}));
}

// Sigmoids of logits from about 17 on are all 1.
TEST_P(RouteTest, TheLargestLogitWinsAmongEqualSigmoids) {
  const Choice choice = Route(GetParam(), {4, 2, true}, {20, 30, -3, 25});
  EXPECT_EQ(choice.ids, (std::vector<int32_t>{1, 3}));
  EXPECT_EQ(choice.weights, (std::vector<float>{1, 1}));
}

// A sigmoid that is too small for a float is 0, and so is their sum.
TEST_P(RouteTest, ScoresThatAreAllZeroGiveWeightsOfZero) {
  const Rule rule{8, 2, true, true, 2.5f};
  const Choice choice = Route(GetParam(), rule, std::vector<float>(8, -200.0f));
  EXPECT_EQ(choice.ids, (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(choice.weights, (std::vector<float>{0, 0}));
}

// Rows that fill a decode graph, whose logits may be anything.
TEST_P(RouteTest, PaddingGetsNoExpert) {
  Random random(3);
  for (const Rule& rule : {Rule{8, 2}, Rule{64, 40, true, true, 2.5f, {}, 8, 6, 2}}) {
    auto logits = random.Floats(size_t{4} * rule.experts, -4, 4);
    const Choice all = Route(GetParam(), rule, logits);
    std::fill_n(logits.begin() + rule.experts, rule.experts, std::nanf(""));
    const Choice choice = Route(GetParam(), rule, logits, {7, 0, 1, 0});
    for (size_t i = 0; i < choice.ids.size(); ++i) {
      const bool padding = i / rule.top_k % 2 == 1;
      EXPECT_EQ(choice.ids[i], padding ? kNoExpert : all.ids[i]) << i;
      EXPECT_EQ(choice.weights[i], padding ? 0.0f : all.weights[i]) << i;
    }
  }
}

TEST_P(RouteTest, ManyExpertsAndManyChoices) {
  Random random(2);
  const Rule rule{1500, 40, false, true};
  const auto logits = random.Floats(size_t{3} * rule.experts, -4, 4);
  Choice expected;
  for (size_t t = 0; t < 3; ++t) NaiveRoute(rule, &logits[t * rule.experts], &expected);
  const Choice actual = Route(GetParam(), rule, logits);
  EXPECT_EQ(actual.ids, expected.ids);
  ExpectClose(actual.weights, expected.weights, 2e-6f);
}

// For any logits, the ids are distinct experts: the grouped products rely on it.
TEST_P(RouteTest, LogitsThatAreNotNumbersStillGiveDistinctExperts) {
  const float nan = std::nanf(""), inf = INFINITY;
  for (const bool sigmoid : {false, true}) {
    for (const uint32_t groups : {1u, 4u}) {
      for (const uint32_t top_k : {2u, 4u}) {
        const Rule rule{8, top_k, sigmoid, true, 1, {}, groups, groups == 1 ? 1u : 2u, 2};
        for (const std::vector<float>& logits : {std::vector<float>(8, nan),
                                                 std::vector<float>(8, inf),
                                                 std::vector<float>(8, -inf),
                                                 {nan, 1, 2, 3, nan, 4, 5, nan},
                                                 {1, nan, nan, nan, nan, nan, nan, nan},
                                                 {inf, -inf, nan, 0, inf, -inf, nan, 0}}) {
          const Choice choice = Route(GetParam(), rule, logits);
          const std::set<int32_t> ids(choice.ids.begin(), choice.ids.end());
          EXPECT_EQ(ids.size(), top_k) << testing::PrintToString(choice.ids);
          EXPECT_GE(*ids.begin(), 0);
          EXPECT_LT(*ids.rbegin(), 8);
        }
      }
    }
  }
  // A NaN is never taken before a number.
  EXPECT_EQ(Route(GetParam(), {4, 2, true}, {nan, -3, nan, 1}).ids, (std::vector<int32_t>{3, 1}));
}

}  // namespace
}  // namespace tandem::kernels
