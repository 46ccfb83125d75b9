// A row draws the same id alone and among others, and the reference's, whatever its distribution:
// on GPUs the number of blocks that share a row depends on the number of rows.
#include <string>
#include <vector>

#include "kernels/ops/not_finite.h"
#include "kernels/reference/backend.h"
#include "tests/kernels/backends.h"

namespace tandem::kernels {
namespace {

class SampleRowsTest : public testing::TestWithParam<BackendCase> {};
TANDEM_INSTANTIATE_BACKENDS(SampleRowsTest);

constexpr uint32_t kLogitRows = 3;
constexpr int32_t kAdjustments = 40;

struct Distribution {
  const char* name;
  float (*logit)(Random& random, uint32_t id);
};
const Distribution kPeaked = {"peaked", [](Random& random, uint32_t id) {
                                return id % 1000 == 7 ? 9.0f : random.Uniform(-40, 3);
                              }};
const Distribution kFlat = {"flat",
                            [](Random& random, uint32_t) { return random.Uniform(0, 0.01f); }};
const Distribution kTied = {"tied", [](Random&, uint32_t) { return -2.5f; }};
const Distribution kSteps = {
    "steps", [](Random&, uint32_t id) { return 0.75f * static_cast<float>(id * 7919 % 11); }};
// About normal, with a deviation of 2.
const Distribution kBell = {"bell", [](Random& random, uint32_t) {
                              float sum = 0;
                              for (int i = 0; i < 12; ++i) sum += random.Uniform(-1, 1);
                              return sum;
                            }};

// Every way in which a row can be drawn; `few`: the usual ones.
std::vector<SamplingRow> Wishes(bool few) {
  std::vector<SamplingRow> wishes = {
      {.temperature = 0},
      {.temperature = 0.8f},
      {.temperature = 0.8f, .top_p = 0.9f, .top_k = 40},
      {.temperature = 0.9f, .top_p = 0.95f},
      {.min_p = 0.1f},
      {.top_p = 0.999999f},
      {.min_p = 0.05f, .typical_p = 0.7f},
  };
  if (few) return wishes;
  const std::vector<SamplingRow> others = {
      {.temperature = 0, .adjustments_end = kAdjustments},
      {.top_k = 1},
      {.temperature = 1.5f, .top_k = 700},
      {.top_k = 1 << 30},
      {.top_p = 0.5f, .top_k = 1 << 30},
      {.temperature = 1.2f, .top_p = 0.3f, .adjustments_end = kAdjustments},
      {.top_k = 90, .typical_p = 0.5f},
      {.top_p = 0.8f, .typical_p = 0.6f},
      {.xtc_probability = 1, .xtc_threshold = 0.01f},
      {.min_p = 0.02f, .top_k = 25, .xtc_probability = 1, .xtc_threshold = 0.04f},
      {.temperature = 0.7f, .min_p = 1},
      {.temperature = 0, .mask_begin = 0},
      {.top_p = 0.9f, .mask_begin = 0},
      {.temperature = 1.1f, .top_k = 50, .adjustments_end = kAdjustments, .mask_begin = 3},
  };
  wishes.insert(wishes.end(), others.begin(), others.end());
  return wishes;
}

std::vector<SamplingRow> Rows(const std::vector<SamplingRow>& wishes, size_t count) {
  std::vector<SamplingRow> rows;
  for (size_t i = 0; i < count; ++i) {
    rows.push_back(wishes[i % wishes.size()]);
    rows.back().seed = 11;
    rows.back().position = i;
    rows.back().logits_row = static_cast<int32_t>(i % kLogitRows);
  }
  return rows;
}

// Logits and adjustments in a backend's memory.
class Sampler {
 public:
  Sampler(Rig& rig, const std::vector<float>& logits, uint32_t vocab)
      : rig_(rig), logits_(rig.Put(logits, 1)), vocab_(vocab) {
    std::vector<LogitAdjustment> list;
    Random random(17);
    for (int32_t i = 0; i < kAdjustments; ++i) {
      // The higher the id, the more: the largest is in a row's last piece.
      const float bias = 0.5f * static_cast<float>(i) + random.Uniform(-1, 1);
      const float repetition = i % 4 == 0 ? 1.0f : random.Uniform(0.5f, 2);
      list.push_back({i * 211, bias, repetition, i % 3 * 0.7f});
    }
    adjustments_ = rig.Put(list);
    // Sparse at first; the last word, which both masks have, allows something.
    std::vector<uint32_t> masks((vocab + 31) / 32 + 3);
    for (size_t i = 0; i < masks.size(); ++i) {
      masks[i] = i % 7 == 0 ? ~0u : 1u << (i * 5 % 32) & (i % 3 == 0 ? ~0u : 0u);
    }
    masks[masks.size() - 4] |= 1;
    masks.back() |= 1;
    masks_ = rig.Put(masks);
  }

  std::vector<int32_t> Draw(const std::vector<SamplingRow>& rows) {
    int32_t* const out = rig_.Put(std::vector<int32_t>(rows.size(), -7));
    const SampleParams params{.logits = logits_,
                              .vocab = vocab_,
                              .rows = rig_.Put(rows),
                              .count = static_cast<uint32_t>(rows.size()),
                              .adjustments = adjustments_,
                              .masks = masks_,
                              .out = out};
    rig_.Run([&](Backend& b) { b.Encode(params); });
    return rig_.Get(out, rows.size());
  }

 private:
  Rig& rig_;
  const float* const logits_;
  const uint32_t vocab_;
  const LogitAdjustment* adjustments_ = nullptr;
  const uint32_t* masks_ = nullptr;
};

// `together` rows in one call, `alone` of them also in calls of their own.
void Check(const BackendCase& c, const Distribution& distribution, uint32_t vocab, bool few,
           size_t together, size_t alone) {
  SCOPED_TRACE(std::string(distribution.name) + ", " + std::to_string(vocab) + " ids");
  Random random(vocab);
  std::vector<float> logits(size_t{kLogitRows} * vocab);
  for (size_t i = 0; i < logits.size(); ++i)
    logits[i] = distribution.logit(random, static_cast<uint32_t>(i % vocab));
  Rig rig(c), reference({"reference", 1}, reference::MakeReferenceBackend(1));
  Sampler sampler(rig, logits, vocab), expected(reference, logits, vocab);
  const auto rows = Rows(Wishes(few), together);
  const auto ids = sampler.Draw(rows);
  EXPECT_EQ(ids, expected.Draw(rows));
  for (size_t i = 0; i < alone; ++i) EXPECT_EQ(sampler.Draw({rows[i]})[0], ids[i]) << "row " << i;
}

TEST_P(SampleRowsTest, SmallVocabularies) {
  for (const auto& distribution : {kPeaked, kFlat, kTied, kSteps, kBell}) {
    Check(GetParam(), distribution, 1, false, 18, 2);
    Check(GetParam(), distribution, 31, false, 36, 18);
    Check(GetParam(), distribution, 1000, false, 64, 18);
  }
}

TEST_P(SampleRowsTest, VocabulariesOfSeveralPieces) {
  for (const auto& distribution : {kFlat, kTied}) Check(GetParam(), distribution, 9000, true, 7, 7);
  Check(GetParam(), kSteps, 9000, false, 18, 18);
  Check(GetParam(), kPeaked, 32000, true, 64, 7);
  Check(GetParam(), kBell, 32000, true, 7, 7);
}

TEST_P(SampleRowsTest, LargeVocabularies) {
  Check(GetParam(), kPeaked, 151936, true, 3, 3);
  Check(GetParam(), kBell, 151936, true, 7, 4);
}

// One such logit among pieces that are sound.
TEST_P(SampleRowsTest, NotFiniteInAnyPiece) {
  constexpr uint32_t kVocab = 9000;
  for (const uint32_t at : {0u, 4095u, 4096u, 8999u}) {
    std::vector<float> logits(size_t{kLogitRows} * kVocab, 0.5f);
    logits[at] = std::numeric_limits<float>::quiet_NaN();
    logits[kVocab + at] = std::numeric_limits<float>::infinity();
    Rig rig(GetParam());
    Sampler sampler(rig, logits, kVocab);
    std::vector<SamplingRow> rows = Rows({{.temperature = 0}}, kLogitRows);
    EXPECT_EQ(sampler.Draw(rows), (std::vector<int32_t>{kNotFinite, kNotFinite, 0})) << at;
    rows = Rows({{.top_p = 0.9f, .adjustments_end = kAdjustments}}, 2);
    EXPECT_EQ(sampler.Draw(rows), (std::vector<int32_t>{kNotFinite, kNotFinite})) << at;
  }
}

}  // namespace
}  // namespace tandem::kernels
