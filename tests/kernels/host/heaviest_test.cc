// What top_p and top_k keep of a large vocabulary, beside a sort.
#include "kernels/host/heaviest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "kernels/host/weight_key.h"

namespace tandem::kernels::host {
namespace {

constexpr uint32_t kVocab = 151936;
const VocabularyLoops& kLoops = baseline::kVocabularyLoops;

std::vector<uint64_t> Sorted(const std::vector<float>& weights) {
  std::vector<uint64_t> keys;
  for (uint32_t id = 0; id < weights.size(); ++id) {
    if (weights[id] > 0) keys.push_back(WeightKey(weights[id], id));
  }
  std::sort(keys.begin(), keys.end(), std::greater<>());
  return keys;
}

uint64_t LastBySorting(const std::vector<uint64_t>& sorted, double top_p) {
  double total = 0, reached = 0;
  for (const uint64_t key : sorted) total += KeyWeight(key);
  for (const uint64_t key : sorted) {
    reached += KeyWeight(key);
    if (reached >= top_p * total) return key;
  }
  return sorted.back();
}

// At most 1, and multiples of 2^-24, so that no sum is rounded.
float Weight(double sixteenths) {
  return static_cast<float>(std::round(sixteenths * 16) * 0x1p-24);
}

std::vector<std::vector<float>> Distributions() {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::normal_distribution<double> normal;
  std::vector<std::vector<float>> all(10, std::vector<float>(kVocab));
  for (uint32_t id = 0; id < kVocab; ++id) {
    all[0][id] = Weight(1 + 6 * uniform(random));       // flat
    all[1][id] = Weight(std::exp(normal(random) + 4));  // wide
    all[2][id] = Weight(std::exp(3 * normal(random)));  // peaked
    all[3][id] = id % 5 == 0 ? 0.0f : 0.3125f;          // ties
    all[4][id] = id == 77777 ? 0.5f : 0x1p-20f;         // one of all
    all[5][id] = 0x1p-100f;                             // all below what is told apart
    all[6][id] = id % 1000 == 3 ? 0.125f : 0.0f;        // few
    all[7][id] = all[8][id] = Weight(1 + 6 * uniform(random));
    all[9][id] = 0.5f;
  }
  // Every 256th part of the ids, which KeepTopP takes for a sample of all: light where the others
  // are heavy, heavy where they are light, and the only heavy ones.
  for (size_t i = 0; i < 256; ++i) {
    const size_t id = i * kVocab / 256;
    all[7][id] = Weight(0.0625 + uniform(random) / 4);
    all[8][id] = Weight(4096 + 4096 * uniform(random));
    all[9][id] = 1.0f;
  }
  return all;
}

TEST(HeaviestTest, TopPEndsWhereASortEndsIt) {
  std::vector<uint64_t> keys(kVocab);
  const auto distributions = Distributions();
  for (size_t d = 0; d < distributions.size(); ++d) {
    const auto sorted = Sorted(distributions[d]);
    double total = 0;
    for (const uint64_t key : sorted) total += KeyWeight(key);
    for (const float top_p : {0.0f, 1e-6f, 0.1f, 0.5f, 0.9f, 0.95f, 0.999f, 0.99999994f}) {
      const uint64_t last = LastBySorting(sorted, top_p);
      const Heaviest kept =
          KeepTopP(kLoops, distributions[d].data(), kVocab, total, top_p, keys.data());
      EXPECT_EQ(kept.last, last) << "distribution " << d << ", top_p " << top_p;
      if (kept.gathered == 0) continue;
      EXPECT_EQ(
          std::count_if(keys.begin(), keys.begin() + static_cast<ptrdiff_t>(kept.gathered),
                        [&](uint64_t key) { return key >= last; }),
          std::count_if(sorted.begin(), sorted.end(), [&](uint64_t key) { return key >= last; }));
    }
  }
}

TEST(HeaviestTest, TopKAreTheFirstOfASort) {
  std::vector<uint64_t> keys(kVocab);
  for (const auto& weights : Distributions()) {
    const auto sorted = Sorted(weights);
    for (const uint32_t top_k : {1u, 40u, 1000u, 2373u, 2374u, 2375u, 50000u, kVocab, kVocab + 1}) {
      const size_t count = GatherTopK(kLoops, weights.data(), kVocab, top_k, keys.data());
      const size_t expected = std::min<size_t>(top_k, sorted.size());
      ASSERT_EQ(count, expected);
      if (top_k == expected) {
        EXPECT_EQ(keys[count - 1], sorted[count - 1]);
      }
      std::sort(keys.begin(), keys.begin() + static_cast<ptrdiff_t>(count), std::greater<>());
      EXPECT_TRUE(
          std::equal(sorted.begin(), sorted.begin() + static_cast<ptrdiff_t>(count), keys.begin()))
          << top_k;
    }
  }
}

}  // namespace
}  // namespace tandem::kernels::host
