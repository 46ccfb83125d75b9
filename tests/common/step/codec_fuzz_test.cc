// Deterministic mutation of valid frames: decoding never crashes, and what decodes encodes to the
// same bytes. Validate gets everything that decodes, and block tables what it takes.
#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "common/step/codec.h"
#include "gtest/gtest.h"
#include "tests/common/step/example_step.h"

namespace tandem::step {
namespace {

using Frame = std::vector<uint8_t>;

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  // One to four changes.
  void Mutate(Frame& frame) {
    const size_t changes = 1 + Below(4);
    for (size_t i = 0; i < changes; ++i) MutateOnce(frame);
  }

  size_t Below(size_t limit) { return limit == 0 ? 0 : random_() % limit; }

 private:
  void MutateOnce(Frame& frame) {
    if (frame.empty()) return;
    const size_t at = Below(frame.size());
    switch (Below(7)) {
      case 0:
        frame[at] ^= 1u << Below(8);
        return;
      case 1:
        frame[at] = static_cast<uint8_t>(random_());
        return;
      case 2:
        frame.resize(at);
        return;
      case 3:
        frame.insert(frame.begin() + at, 1 + Below(16), static_cast<uint8_t>(random_()));
        return;
      case 4:
        frame.erase(frame.begin() + at,
                    frame.begin() + at + Below(std::min<size_t>(16, frame.size() - at)));
        return;
      default:
        SetWord(frame, at);
    }
  }

  // An interesting value in an aligned word: where counts, tags and lengths are.
  void SetWord(Frame& frame, size_t at) {
    static constexpr uint32_t kValues[] = {
        0, 1, 2, 3, 8, 16, 0x7f, 0xffff, 0x3fffffff, 0x7fffffff, 0x80000000, 0xffffffff};
    at &= ~size_t{3};
    if (at + 4 > frame.size()) return;
    uint32_t word = 0;
    std::memcpy(&word, &frame[at], 4);
    word = Below(2) == 0 ? kValues[Below(std::size(kValues))]
                         : word + static_cast<uint32_t>(Below(9)) - 4;
    std::memcpy(&frame[at], &word, 4);
  }

  std::mt19937_64 random_;
};

std::vector<Frame> Seeds() {
  std::vector<Frame> seeds(3);
  Serialize(ExampleStep(), seeds[0]);
  StepResult result = ExampleResult();
  Serialize(result, seeds[1]);
  result.status = absl::InternalError("broken");
  Serialize(result, seeds[2]);
  return seeds;
}

// How many of the two decoders took the frame.
int DecodeAll(const Frame& frame) {
  int taken = 0;
  Frame again;
  if (const auto step = ParseDescriptor(frame); step.ok()) {
    ++taken;
    Serialize(*step, again);
    EXPECT_EQ(again, frame);
    BlockTables tables = ExampleTables();
    if (Validate(*step, ExampleLimits(), tables).ok()) tables.Apply(*step);
    (void)DebugString(*step);
  }
  if (const auto result = ParseResult(frame); result.ok()) {
    ++taken;
    Serialize(*result, again);
    EXPECT_EQ(again, frame);
  }
  return taken;
}

TEST(CodecFuzzTest, MutatedFramesAreRefusedOrDecodeExactly) {
  const std::vector<Frame> seeds = Seeds();
  for (const Frame& seed : seeds) ASSERT_EQ(DecodeAll(seed), 1);
  Mutator mutator(20240601);
  int taken = 0;
  constexpr int kRounds = 200000;
  for (int i = 0; i < kRounds && !testing::Test::HasFailure(); ++i) {
    Frame frame = seeds[mutator.Below(seeds.size())];
    mutator.Mutate(frame);
    taken += DecodeAll(frame);
  }
  // Both outcomes really happen.
  EXPECT_GT(taken, kRounds / 20);
  EXPECT_LT(taken, kRounds);
}

TEST(CodecFuzzTest, NoiseIsRefused) {
  Mutator mutator(7);
  for (int i = 0; i < 20000; ++i) {
    Frame frame(mutator.Below(200));
    for (uint8_t& byte : frame) byte = static_cast<uint8_t>(mutator.Below(256));
    EXPECT_EQ(DecodeAll(frame), 0);
  }
}

}  // namespace
}  // namespace tandem::step
