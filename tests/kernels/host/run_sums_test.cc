// Whichever way the sums of a draw come about, they are those of the weights that are kept.
#include "kernels/host/run_sums.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "kernels/host/sample_filters.h"
#include "kernels/host/weight_key.h"

namespace tandem::kernels::host {
namespace {

const VocabularyLoops& kLoops = baseline::kVocabularyLoops;

std::vector<float> Weights(uint32_t vocab, uint32_t seed) {
  std::mt19937 random(seed);
  std::exponential_distribution<float> weight(1);
  std::vector<float> weights(vocab);
  for (uint32_t id = 0; id < vocab; ++id) weights[id] = id % 7 == 3 ? 0.5f : weight(random);
  weights[vocab / 2] = 0;
  return weights;
}

// The sums of `weights` after `last` is applied, and what four draws give.
struct Sums {
  std::vector<double> sums;
  std::vector<int32_t> drawn;
  friend bool operator==(const Sums&, const Sums&) = default;
};

template <typename Add>
Sums Of(const std::vector<float>& weights, uint64_t last, Add add) {
  const auto vocab = static_cast<uint32_t>(weights.size());
  Sums result{std::vector<double>(RunSums::CountOf(vocab), -1), {}};
  RunSums sums(kLoops, weights.data(), vocab, result.sums.data());
  add(sums);
  for (const double share : {0.0, 0.3, 0.7, 0.9999999999}) {
    result.drawn.push_back(sums.Draw(share, last));
  }
  return result;
}

TEST(RunSumsTest, AreThoseOfWhatIsKept) {
  for (const uint32_t vocab : {2u, 15u, 511u, 512u, 513u, 1100u, 3089u}) {
    const auto weights = Weights(vocab, vocab);
    // Of those that tie, the first, one in the middle and the last; and others.
    const uint32_t middle = vocab / 14 * 7 + 3, end = (vocab - 1) / 7 * 7 + 3;
    for (const uint32_t id : {0u, 3u, middle, end, vocab / 3, vocab - 1}) {
      if (id >= vocab || weights[id] == 0) continue;
      const uint64_t last = WeightKey(weights[id], id);
      auto dropped = weights;
      KeepUpTo(kLoops, last, dropped.data(), vocab);
      const Sums expected = Of(dropped, kKeepsAll, [](RunSums& sums) { sums.AddAll(); });
      EXPECT_EQ(Of(weights, last, [&](RunSums& sums) { sums.AddUpTo(last); }), expected)
          << "up to id " << id << " of " << vocab;
      std::vector<uint64_t> keys;
      for (uint32_t i = 0; i < vocab; ++i) {
        if (weights[i] >= weights[id] / 2) keys.push_back(WeightKey(weights[i], i));
      }
      std::shuffle(keys.begin(), keys.end(), std::mt19937(1));
      EXPECT_EQ(Of(weights, last,
                   [&](RunSums& sums) { sums.AddGathered(keys.data(), keys.size(), last); }),
                expected)
          << "keys up to id " << id << " of " << vocab;
    }
  }
}

// Where what ranks before an id is the share itself.
TEST(RunSumsTest, TopPKeepsNoMoreThanItsShare) {
  const std::vector<float> weights(1024, 1.0f);
  std::vector<double> room(RunSums::CountOf(1024));
  RunSums sums(kLoops, weights.data(), 1024, room.data());
  sums.AddAll();
  for (const uint32_t kept : {1u, 256u, 512u, 513u, 1023u}) {
    const float top_p = static_cast<float>(kept) / 1024;
    EXPECT_TRUE(sums.TopPKeeps(kept - 1, top_p));
    EXPECT_FALSE(sums.TopPKeeps(kept, top_p));
  }
}

// Multiples of 2^-24 with ties, of which no sum is rounded.
TEST(RunSumsTest, TopPKeepsWhatASortKeeps) {
  for (const uint32_t vocab : {1u, 2u, 15u, 511u, 512u, 513u, 1100u, 3089u}) {
    auto weights = Weights(vocab, vocab);
    std::vector<uint64_t> keys;
    double total = 0;
    for (uint32_t id = 0; id < vocab; ++id) {
      weights[id] = std::round(weights[id] * 0x1p20f) * 0x1p-24f;
      total += weights[id];
      keys.push_back(WeightKey(weights[id], id));
    }
    if (vocab == 1) {  // whose weight is 0
      weights[0] = 1;
      total = 1;
      keys[0] = WeightKey(1, 0);
    }
    std::sort(keys.begin(), keys.end(), std::greater<>());
    std::vector<double> room(RunSums::CountOf(vocab));
    RunSums sums(kLoops, weights.data(), vocab, room.data());
    sums.AddAll();
    for (const float top_p : {0.0f, 1e-6f, 0.125f, 0.5f, 0.75f, 0.96875f, 0.99999994f}) {
      double before = 0;
      for (size_t rank = 0; rank < keys.size() && KeyWeight(keys[rank]) > 0; ++rank) {
        EXPECT_EQ(sums.TopPKeeps(KeyId(keys[rank]), top_p), rank == 0 || before < top_p * total)
            << "rank " << rank << " of " << vocab << ", top_p " << top_p;
        before += KeyWeight(keys[rank]);
      }
    }
  }
}

}  // namespace
}  // namespace tandem::kernels::host
