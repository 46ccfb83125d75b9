// Every instruction set gives the bits of the baseline, at every length and for every value.
#include "kernels/host/vocabulary_loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/cpu/isa.h"
#include "kernels/host/weight_key.h"

namespace tandem::kernels::host {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class VocabularyLoopsTest : public testing::TestWithParam<const VocabularyLoops*> {};

std::vector<const VocabularyLoops*> Runnable() {
  std::vector<const VocabularyLoops*> all = {&baseline::kVocabularyLoops};
  if (cpu::MissingInstructions(cpu::Isa::kAvx2).empty()) all.push_back(&avx2::kVocabularyLoops);
  if (cpu::MissingInstructions(cpu::Isa::kAvx512).empty()) all.push_back(&avx512::kVocabularyLoops);
  return all;
}
INSTANTIATE_TEST_SUITE_P(InstructionSets, VocabularyLoopsTest, testing::ValuesIn(Runnable()));

std::vector<float> Values(size_t n, float low, float high, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(low, high);
  std::vector<float> values(n);
  for (float& value : values) value = uniform(random);
  return values;
}

const std::vector<size_t> kLengths = {1, 2, 7, 15, 16, 17, 31, 33, 64, 127, 128, 130, 1000, 5003};

std::vector<uint32_t> Bits(const std::vector<float>& values) {
  std::vector<uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<uint32_t>(value));
  return bits;
}

TEST_P(VocabularyLoopsTest, FirstIsTheFirst) {
  for (const size_t n : kLengths) {
    for (size_t at = 0; at < n; at += n / 3 + 1) {
      auto x = Values(n, -9, 9, 1);
      std::fill(x.begin() + static_cast<ptrdiff_t>(at), x.end(), 10.0f);
      EXPECT_EQ(GetParam()->first(x.data(), n, 10.0f), at);
      EXPECT_EQ(GetParam()->first(x.data(), n, 11.0f), n);
    }
  }
}

TEST_P(VocabularyLoopsTest, LargestIsTheLargest) {
  for (const size_t n : kLengths) {
    auto x = Values(n, -9, 9, 1);
    for (size_t at = 0; at < n; at += n / 3 + 1) {
      x[at] = 10.0f + static_cast<float>(at);
      EXPECT_EQ(GetParam()->largest(x.data(), n), x[at]);
      auto broken = x;
      broken[at] = std::nanf("");
      EXPECT_EQ(GetParam()->largest(broken.data(), n), kInfinity) << n << " " << at;
      broken[at] = kInfinity;
      EXPECT_EQ(GetParam()->largest(broken.data(), n), kInfinity);
    }
    EXPECT_EQ(GetParam()->largest(std::vector<float>(n, -kInfinity).data(), n), -kInfinity);
  }
}

TEST_P(VocabularyLoopsTest, WeightsHaveTheBitsOfTheBaseline) {
  for (const float temperature : {1.0f, 0.7f, 3.0f}) {
    for (const size_t n : kLengths) {
      auto logits = Values(n, -120, 5, 2);
      logits[n / 2] = -kInfinity;
      std::vector<float> weights(n, -1), expected(n, -1);
      GetParam()->weigh(logits.data(), n, 5, temperature, 1e-30f, weights.data());
      baseline::kVocabularyLoops.weigh(logits.data(), n, 5, temperature, 1e-30f, expected.data());
      EXPECT_EQ(Bits(weights), Bits(expected));
      for (size_t i = 0; i < n; ++i) {
        const double weight = std::exp((double{logits[i]} - 5) / temperature);
        EXPECT_NEAR(weights[i], weight < 1e-30 ? 0 : weight, 1e-5 * weight + 1e-35) << logits[i];
      }
      GetParam()->weigh(logits.data(), n, 5, temperature, 1e-30f, logits.data());
      EXPECT_EQ(Bits(logits), Bits(expected)) << "in place";
    }
  }
}

TEST_P(VocabularyLoopsTest, WeightsAreExponentialsThatNeverRise) {
  constexpr size_t kCount = 360000;
  std::vector<float> logits(kCount), weights(kCount);
  for (size_t i = 0; i < kCount; ++i) logits[i] = -static_cast<float>(i) / 4093;  // to -88
  GetParam()->weigh(logits.data(), kCount, 0, 1, 0, weights.data());
  EXPECT_EQ(weights[0], 1);
  for (size_t i = 0; i < kCount; ++i) {
    const double exact = logits[i] < -87 ? 0 : std::exp(double{logits[i]});
    const double relative = 3e-7 - 8e-8 * double{logits[i]};
    ASSERT_NEAR(weights[i], exact, std::min(2e-7, relative * exact)) << logits[i];
    ASSERT_LE(weights[i], weights[i == 0 ? 0 : i - 1]) << logits[i];
  }
}

TEST_P(VocabularyLoopsTest, SumsWhatIsLargeEnough) {
  for (const size_t n : kLengths) {
    const auto weights = Values(n, 0, 1, 3);
    for (const float least : {0.0f, weights[0], 0.9f, 2.0f}) {
      double sum = 0;
      for (const float weight : weights) sum += weight >= least ? weight : 0;
      const double actual = GetParam()->sum(weights.data(), n, least);
      EXPECT_NEAR(actual, sum, 1e-12 * sum);
      EXPECT_EQ(actual, baseline::kVocabularyLoops.sum(weights.data(), n, least));
    }
  }
}

TEST_P(VocabularyLoopsTest, NarrowsInOrderAndInPlace) {
  for (const size_t n : kLengths) {
    auto weights = Values(n, 0, 1, 6);
    for (const auto& [least, most] : std::vector<std::pair<float, float>>{
             {0.0f, 1.0f}, {0.5f, kInfinity}, {weights[n / 2], weights[n / 2]}, {0.7f, 0.2f}}) {
      std::vector<float> expected;
      for (const float weight : weights) {
        if (weight >= least && weight <= most) expected.push_back(weight);
      }
      std::vector<float> kept(n);
      kept.resize(GetParam()->narrow(weights.data(), n, least, most, kept.data()));
      EXPECT_EQ(kept, expected);
      auto in_place = weights;
      in_place.resize(GetParam()->narrow(in_place.data(), n, least, most, in_place.data()));
      EXPECT_EQ(in_place, expected);
    }
  }
}

TEST_P(VocabularyLoopsTest, MaximaOfParts) {
  for (const size_t n : kLengths) {
    const auto weights = Values(n, 0, 1, 4);
    std::vector<float> expected((n + kMaximaOf - 1) / kMaximaOf);
    for (size_t i = 0; i < n; ++i)
      expected[i / kMaximaOf] = std::max(expected[i / kMaximaOf], weights[i]);
    std::vector<float> actual(expected.size());
    GetParam()->maxima(weights.data(), n, actual.data());
    EXPECT_EQ(actual, expected);
  }
}

TEST_P(VocabularyLoopsTest, GathersAndDropsByWeight) {
  for (const size_t n : kLengths) {
    auto weights = Values(n, 0, 1, 5);
    const float least = weights[n / 2], most = std::max(least, 0.8f);
    std::vector<uint64_t> expected;
    for (size_t i = 0; i < n; ++i) {
      if (weights[i] >= least && weights[i] <= most)
        expected.push_back(WeightKey(weights[i], static_cast<uint32_t>(i)));
    }
    std::vector<uint64_t> keys(n);
    for (const size_t room : {n, expected.size()}) {
      keys.resize(n);
      keys.resize(GetParam()->gather(weights.data(), n, least, most, room, keys.data()));
      EXPECT_EQ(keys, expected);
    }
    std::vector<uint64_t> few(expected.size() - 1);
    EXPECT_GT(GetParam()->gather(weights.data(), n, least, most, few.size(), few.data()),
              few.size());
    auto kept = weights;
    GetParam()->drop(kept.data(), n, least);
    for (size_t i = 0; i < n; ++i) EXPECT_EQ(kept[i], weights[i] >= least ? weights[i] : 0.0f);
  }
}

}  // namespace
}  // namespace tandem::kernels::host
