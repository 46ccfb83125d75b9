// LogProbs against a scalar log-softmax in double that sorts everything.
#include <cmath>
#include <numeric>

#include "tests/kernels/backends.h"

namespace tandem::kernels {
namespace {

class LogProbsTest : public testing::TestWithParam<BackendCase> {};
TANDEM_INSTANTIATE_BACKENDS(LogProbsTest);

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Result {
  int32_t id;
  float logprob;
  int32_t rank;

  bool operator==(const Result&) const = default;
};

// What rows ask for, in host terms.
struct Wish {
  int32_t logits_row = 0;
  int32_t sample = -1;
  std::vector<int32_t> ids;
  uint32_t top_n = 0;

  uint32_t count() const {
    return (sample >= 0 ? 1 : 0) + static_cast<uint32_t>(ids.size()) + top_n;
  }
};

// The results of every request.
std::vector<std::vector<Result>> Ask(Rig& rig, const std::vector<float>& logits, uint32_t vocab,
                                     const std::vector<Wish>& wishes,
                                     const std::vector<int32_t>& sampled) {
  std::vector<LogProbsRow> rows;
  std::vector<int32_t> ids;
  uint32_t out_count = 0;
  for (const Wish& wish : wishes) {
    const auto begin = static_cast<int32_t>(ids.size());
    ids.insert(ids.end(), wish.ids.begin(), wish.ids.end());
    rows.push_back({.logits_row = wish.logits_row,
                    .sample = wish.sample,
                    .ids_begin = begin,
                    .ids_end = static_cast<int32_t>(ids.size()),
                    .top_n = wish.top_n,
                    .out_begin = out_count});
    out_count += wish.count();
  }
  const LogProbsParams params{.logits = rig.Put(logits, 1),
                              .vocab = vocab,
                              .rows = rig.Put(rows),
                              .count = static_cast<uint32_t>(rows.size()),
                              .ids = ids.empty() ? nullptr : rig.Put(ids),
                              .sampled = sampled.empty() ? nullptr : rig.Put(sampled),
                              .out_count = out_count,
                              .out_ids = rig.Put(std::vector<int32_t>(out_count, -7)),
                              .out_logprobs = rig.Poisoned(out_count),
                              .out_ranks = rig.Put(std::vector<int32_t>(out_count, -7))};
  rig.Run([&](Backend& b) { b.Encode(params); });
  const auto out_ids = rig.Get(params.out_ids, out_count);
  const auto out_logprobs = rig.Get(params.out_logprobs, out_count);
  const auto out_ranks = rig.Get(params.out_ranks, out_count);
  std::vector<std::vector<Result>> results;
  size_t next = 0;
  for (const Wish& wish : wishes) {
    std::vector<Result>& result = results.emplace_back();
    for (uint32_t i = 0; i < wish.count(); ++i, ++next) {
      result.push_back({out_ids[next], out_logprobs[next], out_ranks[next]});
    }
  }
  return results;
}

double NaiveLogProb(const float* logits, uint32_t vocab, int32_t id) {
  double largest = -kInf;
  for (uint32_t i = 0; i < vocab; ++i) largest = std::max<double>(largest, logits[i]);
  double sum = 0;
  for (uint32_t i = 0; i < vocab; ++i) sum += std::exp(logits[i] - largest);
  return logits[id] - largest - std::log(sum);
}

int32_t NaiveRank(const float* logits, uint32_t vocab, int32_t id) {
  return 1 + static_cast<int32_t>(std::count_if(logits, logits + vocab,
                                                [&](float other) { return other > logits[id]; }));
}

std::vector<int32_t> NaiveTop(const float* logits, uint32_t vocab, uint32_t n) {
  std::vector<int32_t> ids(vocab);
  std::iota(ids.begin(), ids.end(), 0);
  std::stable_sort(ids.begin(), ids.end(),
                   [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
  ids.resize(n);
  return ids;
}

TEST_P(LogProbsTest, AgreesWithAScalarLogSoftmax) {
  Rig rig(GetParam());
  Random random(11);
  const uint32_t large = GetParam().kernels == "emulated" ? 5000 : 40000;
  for (const uint32_t vocab : {1u, 2u, 15u, 97u, 1031u, large}) {
    SCOPED_TRACE(vocab);
    constexpr uint32_t kRows = 5;
    std::vector<float> logits = random.Floats(size_t{kRows} * vocab, -12, 12);
    // Ties, as quantised heads make them.
    for (float& logit : logits) logit = std::round(logit * 64) / 64;
    std::vector<int32_t> sampled;
    std::vector<Wish> wishes;
    const auto draw = [&] { return random.Int(0, static_cast<int>(vocab) - 1); };
    for (int32_t row : {4, 0, 2, 2, 1}) {  // any order, and twice
      Wish& wish = wishes.emplace_back();
      wish.logits_row = row;
      if (row != 0) {
        wish.sample = static_cast<int32_t>(sampled.size());
        sampled.push_back(draw());
      }
      for (int32_t i = 0; i < row; ++i) wish.ids.push_back(draw());
      wish.top_n = std::min({vocab, kMaxTopLogprobs, 10 * static_cast<uint32_t>(row)});
    }
    const auto results = Ask(rig, logits, vocab, wishes, sampled);
    for (size_t w = 0; w < wishes.size(); ++w) {
      const float* row = logits.data() + static_cast<size_t>(wishes[w].logits_row) * vocab;
      std::vector<int32_t> expected;
      if (wishes[w].sample >= 0) expected.push_back(sampled[static_cast<size_t>(wishes[w].sample)]);
      expected.insert(expected.end(), wishes[w].ids.begin(), wishes[w].ids.end());
      const auto top = NaiveTop(row, vocab, wishes[w].top_n);
      expected.insert(expected.end(), top.begin(), top.end());
      ASSERT_EQ(results[w].size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_EQ(results[w][i].id, expected[i]);
        EXPECT_EQ(results[w][i].rank, NaiveRank(row, vocab, expected[i]));
        EXPECT_NEAR(results[w][i].logprob, NaiveLogProb(row, vocab, expected[i]), 4e-6);
      }
    }
  }
}

TEST_P(LogProbsTest, EqualLogitsShareARankAndTheLowerIdComesFirst) {
  Rig rig(GetParam());
  const std::vector<float> logits = {1, 3, 2, 3, 2, 0};
  const auto results =
      Ask(rig, logits, 6, {{.logits_row = 0, .sample = -1, .ids = {4}, .top_n = 5}}, {});
  const std::vector<Result>& row = results[0];
  EXPECT_EQ(row[0].rank, 3);
  const std::vector<int32_t> ids = {1, 3, 2, 4, 0};
  const std::vector<int32_t> ranks = {1, 1, 3, 3, 5};
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(row[i + 1].id, ids[i]);
    EXPECT_EQ(row[i + 1].rank, ranks[i]);
  }
}

TEST_P(LogProbsTest, TheWholeOfASmallVocabularySumsToOne) {
  Rig rig(GetParam());
  Random random(3);
  const auto results = Ask(rig, random.Floats(20, -3, 3), 20,
                           {{.logits_row = 0, .sample = -1, .ids = {}, .top_n = 20}}, {});
  double sum = 0;
  for (const Result& result : results[0]) sum += std::exp(result.logprob);
  EXPECT_NEAR(sum, 1, 1e-6);
}

// On GPUs the number of blocks that share a row depends on the number of rows.
TEST_P(LogProbsTest, ARowsBitsDependOnlyOnIt) {
  constexpr uint32_t kVocab = 20000;
  constexpr int32_t kRows = 3;
  Rig rig(GetParam());
  Random random(5);
  std::vector<float> logits = random.Floats(size_t{kRows} * kVocab, -12, 12);
  for (size_t i = 0; i < kVocab; ++i) logits[i] = std::round(logits[i]);  // many ties
  std::vector<Wish> wishes;
  for (int32_t i = 0; i < 9; ++i) {
    Wish& wish = wishes.emplace_back();
    wish.logits_row = i % kRows;
    wish.top_n = static_cast<uint32_t>(i * 2);
    for (int32_t j = 0; j < i; ++j) wish.ids.push_back(random.Int(0, kVocab - 1));
  }
  // So many that a large device has a block per row for them, but several for one alone.
  std::vector<Wish> many;
  for (int i = 0; i < 30; ++i) many.insert(many.end(), wishes.begin(), wishes.end());
  const auto together = Ask(rig, logits, kVocab, many, {});
  for (size_t i = 0; i < wishes.size(); ++i) {
    EXPECT_EQ(Ask(rig, logits, kVocab, {wishes[i]}, {})[0], together[i]) << "row " << i;
  }
}

// More ids than a block looks at in one pass, and more pieces of a row than a warp has lanes.
TEST_P(LogProbsTest, ManyIdsOfALargeVocabulary) {
  constexpr uint32_t kVocab = 140'000;
  Rig rig(GetParam());
  std::vector<float> logits(kVocab);
  for (uint32_t id = 0; id < kVocab; ++id) logits[id] = -0.01f * static_cast<float>(id);
  Wish wish;
  for (int32_t i = 0; i < 40; ++i) wish.ids.push_back(i * 3500);
  const auto row = Ask(rig, logits, kVocab, {wish}, {})[0];
  for (size_t i = 0; i < wish.ids.size(); ++i) {
    EXPECT_EQ(row[i].id, wish.ids[i]);
    EXPECT_EQ(row[i].rank, wish.ids[i] + 1);
    EXPECT_FLOAT_EQ(row[i].logprob, row[0].logprob + logits[static_cast<size_t>(wish.ids[i])]);
  }
}

// A piece of a row may have nothing else.
TEST_P(LogProbsTest, ImpossibleLogitsBeforeAndBehindTheOnlyPossibleOnes) {
  constexpr uint32_t kVocab = 13000;
  Rig rig(GetParam());
  for (const int32_t at : {100, 6000, 12998}) {
    SCOPED_TRACE(at);
    std::vector<float> logits(kVocab, -kInf);
    logits[0] = kNan;
    logits[static_cast<size_t>(at)] = -200;
    logits[static_cast<size_t>(at) + 1] = -200;
    const auto row = Ask(rig, logits, kVocab, {{.ids = {at, 0}, .top_n = 3}}, {})[0];
    const auto half = static_cast<float>(std::log(0.5));
    const std::vector<Result> expected = {
        {at, half, 1}, {0, -kInf, 3}, {at, half, 1}, {at + 1, half, 1}, {0, -kInf, 3}};
    EXPECT_EQ(row, expected);
  }
}

TEST_P(LogProbsTest, ImpossibleLogitsHaveLogProbabilityMinusInfinity) {
  Rig rig(GetParam());
  const std::vector<float> logits = {-kInf, 0, kNan, 0, -kInf, -kInf, -kInf, kNan};
  const auto results = Ask(rig, logits, 4,
                           {{.logits_row = 0, .sample = -1, .ids = {0, 2}, .top_n = 4},
                            {.logits_row = 1, .sample = -1, .ids = {1}, .top_n = 1}},
                           {});
  EXPECT_EQ(results[0][0].logprob, -kInf);
  EXPECT_EQ(results[0][0].rank, 3);
  EXPECT_EQ(results[0][1].logprob, -kInf);
  EXPECT_EQ(results[0][1].rank, 3);
  EXPECT_EQ(results[0][2].id, 1);
  EXPECT_NEAR(results[0][2].logprob, std::log(0.5), 1e-6);
  EXPECT_EQ(results[0][3].id, 3);
  EXPECT_EQ(results[0][3].rank, 1);
  EXPECT_EQ(results[0][5].logprob, -kInf);
  EXPECT_EQ(results[1][0].logprob, -kInf);
  EXPECT_EQ(results[1][0].rank, 1);
}

}  // namespace
}  // namespace tandem::kernels
