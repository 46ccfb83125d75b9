#include <cmath>

#include "tests/kernels/recurrent_rows.h"

namespace tandem::kernels {
namespace {

class ShortConvTest : public testing::TestWithParam<BackendCase> {};
TANDEM_INSTANTIATE_BACKENDS(ShortConvTest);

// One sequence from position 0 on.
std::vector<float> NaiveConv(const std::vector<float>& x, const std::vector<float>& weight,
                             size_t taps) {
  const size_t channels = weight.size() / taps;
  std::vector<float> out(x.size());
  for (size_t row = 0; row < x.size() / channels; ++row) {
    for (size_t c = 0; c < channels; ++c) {
      double sum = 0;
      for (size_t j = 0; j < taps && j <= row; ++j) {
        sum += double{weight[c * taps + taps - 1 - j]} * x[(row - j) * channels + c];
      }
      out[row * channels + c] = static_cast<float>(sum / (1 + std::exp(-sum)));
    }
  }
  return out;
}

struct Problem {
  uint32_t channels;
  uint32_t taps;
  std::vector<float> weight;
};

Problem MakeProblem(Random& random, uint32_t channels, uint32_t taps) {
  return {channels, taps, random.Floats(size_t{channels} * taps)};
}

// Runs one call on `state`, with the rows of all sequences in `x`.
std::vector<float> RunConv(Rig& rig, const Problem& problem,
                           const std::vector<RecurrentRows>& sequences, uint32_t num_slots,
                           const std::vector<float>& x, float* state, size_t misaligned_by = 0) {
  float* const out = rig.Poisoned(x.size(), misaligned_by);
  const ShortConvParams params{.batch = PutBatch(rig, sequences, num_slots),
                               .x = rig.Put(x, misaligned_by),
                               .weight = rig.Put(problem.weight, misaligned_by),
                               .channels = problem.channels,
                               .taps = problem.taps,
                               .state = state,
                               .out = out};
  rig.Run([&](Backend& b) { b.Encode(params); });
  return rig.Get(out, x.size());
}

TEST_P(ShortConvTest, MatchesTheFormulaForAllShapes) {
  Random random(1);
  for (const uint32_t channels : {1u, 7u, 16u, 65u, 130u, 515u}) {
    for (const uint32_t taps : {2u, 4u, 7u}) {
      for (const int rows : {1, 2, 3, 20}) {
        SCOPED_TRACE(testing::Message() << channels << " channels, " << taps << " taps, " << rows);
        Rig rig(GetParam());
        const Problem problem = MakeProblem(random, channels, taps);
        const auto x = random.Floats(size_t{channels} * static_cast<size_t>(rows), -2, 2);
        float* const state = rig.Poisoned(size_t{3} * (taps - 1) * channels, 1);
        const auto out = RunConv(rig, problem, {{rows, rows, 1}}, 3, x, state, 1);
        ExpectClose(out, NaiveConv(x, problem.weight, taps), 2e-6f);
      }
    }
  }
}

TEST_P(ShortConvTest, ARowsBitsDoNotDependOnChunksAndNeighbours) {
  Random random(2);
  Rig rig(GetParam());
  constexpr uint32_t kChannels = 70, kTaps = 4, kSlots = 5;
  constexpr int kRows = 23;
  const Problem problem = MakeProblem(random, kChannels, kTaps);
  const auto x = random.Floats(kRows * kChannels, -2, 2);
  const size_t state_size = kSlots * (kTaps - 1) * kChannels;
  const auto whole =
      RunConv(rig, problem, {{kRows, kRows, 0}}, kSlots, x, rig.Poisoned(state_size));
  const auto other = random.Floats(3 * kChannels, -2, 2);
  for (const int chunk : {1, 2, 3, 5, 11}) {
    float* const state = rig.Poisoned(state_size);
    for (int begin = 0; begin < kRows; begin += chunk) {
      const int rows = std::min(chunk, kRows - begin);
      const auto mine =
          SomeRows(x, kChannels, static_cast<size_t>(begin), static_cast<size_t>(rows));
      std::vector<float> both = other;
      both.insert(both.end(), mine.begin(), mine.end());
      const auto out =
          RunConv(rig, problem, {{3, 3, 1}, {rows, begin + rows, 4}}, kSlots, both, state);
      ExpectSameBits(
          SomeRows(out, kChannels, 3, static_cast<size_t>(rows)),
          SomeRows(whole, kChannels, static_cast<size_t>(begin), static_cast<size_t>(rows)));
    }
  }
}

TEST_P(ShortConvTest, AStateSavedWithinAChunkContinuesInAnotherSlot) {
  Random random(5);
  Rig rig(GetParam());
  constexpr uint32_t kChannels = 21, kTaps = 4;
  constexpr int kRows = 9, kFirst = 2, kChunk = 4;  // a window reaches into the chunk before
  constexpr size_t kSize = (kTaps - 1) * kChannels;
  const Problem problem = MakeProblem(random, kChannels, kTaps);
  const auto x = random.Floats(kRows * kChannels, -2, 2);
  const auto rows = [&](const std::vector<float>& all, int first, int count) {
    return SomeRows(all, kChannels, static_cast<size_t>(first), static_cast<size_t>(count));
  };
  const auto whole = RunConv(rig, problem, {{kRows, kRows, 0}}, 1, x, rig.Poisoned(kSize));
  for (int after = 1; after <= kChunk; ++after) {
    SCOPED_TRACE(testing::Message() << "saved after " << after << " rows");
    float* const state = rig.Poisoned(4 * kSize);
    RunConv(rig, problem, {{kFirst, kFirst, 0}}, 4, rows(x, 0, kFirst), state);
    RunConv(rig, problem, {{kChunk, kFirst + kChunk, 0, -1, 3, after}}, 4, rows(x, kFirst, kChunk),
            state);
    const auto saved = SomeRows(rig.Get(state, 4 * kSize), kSize, 3, 1);
    const int from = kFirst + after;
    const auto rest =
        RunConv(rig, problem, {{kRows - from, kRows, 1, 3}}, 4, rows(x, from, kRows - from), state);
    ExpectSameBits(rest, rows(whole, from, kRows - from));
    ExpectSameBits(SomeRows(rig.Get(state, 4 * kSize), kSize, 3, 1), saved);
    // The sequence that was saved continues too, from its own slot.
    const int left = kRows - kFirst - kChunk;
    const auto own =
        RunConv(rig, problem, {{left, kRows, 0}}, 4, rows(x, kRows - left, left), state);
    ExpectSameBits(own, rows(whole, kRows - left, left));
  }
}

TEST_P(ShortConvTest, PaddingTouchesNoState) {
  Random random(3);
  Rig rig(GetParam());
  constexpr uint32_t kChannels = 9, kTaps = 4;
  const Problem problem = MakeProblem(random, kChannels, kTaps);
  const auto before = random.Floats(2 * (kTaps - 1) * kChannels);
  float* const state = rig.Put(before);
  const auto out =
      RunConv(rig, problem, {{1, 0, 0}, {1, 0, 0}}, 2, random.Floats(2 * kChannels), state);
  ExpectSameBits(out, std::vector<float>(2 * kChannels, 0.0f));
  ExpectSameBits(rig.Get(state, before.size()), before);
}

TEST_P(ShortConvTest, TheStateHasTheLastRows) {
  Random random(4);
  Rig rig(GetParam());
  constexpr uint32_t kChannels = 5, kTaps = 4;
  const Problem problem = MakeProblem(random, kChannels, kTaps);
  const auto x = random.Floats(6 * kChannels), unused = random.Floats(3 * kChannels);
  std::vector<float> slots = unused;
  slots.insert(slots.end(), unused.begin(), unused.end());
  float* const state = rig.Put(slots);
  RunConv(rig, problem, {{6, 6, 1}}, 2, x, state);
  const auto after = rig.Get(state, slots.size());
  ExpectSameBits(SomeRows(after, kChannels, 0, 3), unused);
  ExpectSameBits(SomeRows(after, kChannels, 3, 3), SomeRows(x, kChannels, 3, 3));
}

}  // namespace
}  // namespace tandem::kernels
