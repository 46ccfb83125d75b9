// Drives a fuzz target, the same way on every run: its seeds, inputs that once mattered (the files
// of its corpus), and mutations of both.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <utility>

#include "tests/fuzz/target.h"

namespace tandem::fuzz {
namespace {

// Of the files in TANDEM_CORPUS, which is the target's folder; it may have none.
std::vector<Bytes> Corpus() {
  std::vector<std::filesystem::path> paths;
  if (std::filesystem::exists(TANDEM_CORPUS)) {
    for (const auto& file : std::filesystem::directory_iterator(TANDEM_CORPUS)) {
      paths.push_back(file.path());
    }
  }
  std::ranges::sort(paths);
  std::vector<Bytes> inputs;
  for (const std::filesystem::path& path : paths) {
    std::ifstream in(path, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return inputs;
}

// In memory of exactly its size.
bool TakeExactly(const Bytes& input) {
  const Bytes copy(input.begin(), input.end());
  return Take(copy);
}

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  size_t Below(size_t limit) { return limit == 0 ? 0 : random_() % limit; }

  void Mutate(Bytes& input) {
    for (size_t changes = 1 + Below(4); changes > 0 && !input.empty(); --changes) {
      MutateOnce(input, static_cast<ptrdiff_t>(Below(input.size())));
    }
  }

 private:
  void MutateOnce(Bytes& input, ptrdiff_t at) {
    const auto left = static_cast<size_t>(input.end() - input.begin() - at);
    switch (Below(7)) {
      case 0:
        input[at] ^= static_cast<uint8_t>(1 << Below(8));
        return;
      case 1:
        input[at] = static_cast<uint8_t>(random_());
        return;
      case 2:
        input.resize(static_cast<size_t>(at));
        return;
      case 3:
        input.insert(input.begin() + at, 1 + Below(16), static_cast<uint8_t>(random_()));
        return;
      case 4:
        input.erase(input.begin() + at,
                    input.begin() + at + static_cast<ptrdiff_t>(Below(std::min<size_t>(16, left))));
        return;
      default:
        SetWord(input, static_cast<size_t>(at) & ~size_t{3});
    }
  }

  // A number at the edges in an aligned word: where counts, tags and lengths often are.
  void SetWord(Bytes& input, size_t at) {
    static constexpr uint32_t kEdges[] = {
        0, 1, 2, 3, 8, 16, 0x7f, 0xffff, 0x3fffffff, 0x7fffffff, 0x80000000, 0xffffffff};
    uint32_t word = 0;
    if (at + sizeof(word) > input.size()) return;
    std::memcpy(&word, &input[at], sizeof(word));
    word = Below(2) == 0 ? kEdges[Below(std::size(kEdges))]
                         : word + static_cast<uint32_t>(Below(9)) - 4;
    std::memcpy(&input[at], &word, sizeof(word));
  }

  std::mt19937_64 random_;
};

TEST(CorpusTest, SeedsAreSound) {
  const std::vector<Bytes> seeds = Seeds();
  EXPECT_FALSE(seeds.empty());
  for (size_t i = 0; i < seeds.size(); ++i) EXPECT_TRUE(TakeExactly(seeds[i])) << "seed " << i;
}

TEST(CorpusTest, NothingAtAllIsNotSound) { EXPECT_FALSE(Take({})); }

TEST(CorpusTest, WhatOnceMatteredIsRefusedOrSound) {
  for (const Bytes& input : Corpus()) {
    EXPECT_FALSE(input.empty());
    TakeExactly(input);
  }
}

TEST(CorpusTest, MutationsAreRefusedOrSound) {
  std::vector<Bytes> inputs = Seeds();
  for (Bytes& input : Corpus()) inputs.push_back(std::move(input));
  Mutator mutator(20240601);
  constexpr int kRounds = TANDEM_MUTATIONS;
  int sound = 0;
  for (int i = 0; i < kRounds; ++i) {
    Bytes input = inputs[mutator.Below(inputs.size())];
    mutator.Mutate(input);
    sound += TakeExactly(input) ? 1 : 0;
  }
  // Both really happen.
  EXPECT_GT(sound, kRounds / 100);
  EXPECT_LT(sound, kRounds);
}

}  // namespace
}  // namespace tandem::fuzz
