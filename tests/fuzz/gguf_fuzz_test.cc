// Mutates sound golden files, the same way on every run, and feeds them to gguf_fuzz.cc, which
// aborts on what must not be.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/target.h"

namespace tandem {

namespace {

using fuzz::Bytes;

Bytes ReadFile(const std::string& path) {
  std::ifstream in("tests/golden/" + path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// In memory of exactly its size.
bool Load(const Bytes& bytes) { return fuzz::Take(Bytes(bytes.begin(), bytes.end())); }

// Where header, metadata and tensor table of ok-base.gguf end (bad-gguf/trunc-before-data.gguf is
// cut right there).
size_t HeaderSize() { return ReadFile("bad-gguf/trunc-before-data.gguf").size(); }

struct Outcome {
  int accepted = 0;
  int refused = 0;
  void Add(bool accept) { ++(accept ? accepted : refused); }
};

TEST(GgufFuzzTest, TheSoundFilesAreAccepted) {
  for (const char* path :
       {"bad-gguf/ok-base.gguf", "bad-gguf/ok-align64.gguf", "bad-gguf/ok-version2.gguf",
        "arch/qwen3/model.gguf", "quant/models/Q4_K_M.gguf"}) {
    EXPECT_TRUE(Load(ReadFile(path))) << path;
  }
}

TEST(GgufFuzzTest, EveryHeaderByteFlippedOnce) {
  const Bytes base = ReadFile("bad-gguf/ok-base.gguf");
  const size_t header = HeaderSize();
  ASSERT_GT(header, 1000u);
  ASSERT_LT(header, base.size());
  Outcome outcome;
  for (size_t at = 0; at < header; ++at) {
    for (const uint8_t mask : {0x01, 0x80, 0xff}) {
      Bytes mutated = base;
      mutated[at] ^= mask;
      outcome.Add(Load(mutated));
    }
  }
  EXPECT_GT(outcome.accepted, 1000);  // most of the header is token text
  EXPECT_GT(outcome.refused, 1000);
}

TEST(GgufFuzzTest, NumbersReplacedByHostileOnes) {
  const Bytes base = ReadFile("bad-gguf/ok-base.gguf");
  const size_t header = HeaderSize();
  const uint64_t kHostile[] = {0,
                               1,
                               3,
                               0x7f,
                               0xffff,
                               0x7fffffff,
                               0x80000000,
                               0xffffffff,
                               uint64_t{1} << 32,
                               uint64_t{1} << 62,
                               uint64_t{1} << 63,
                               UINT64_MAX,
                               UINT64_MAX - 31,
                               header,
                               base.size()};
  Outcome outcome;
  std::mt19937_64 random(1);
  for (int i = 0; i < 6000; ++i) {
    Bytes mutated = base;
    const size_t at = random() % (header - 8);
    const uint64_t value = kHostile[random() % std::size(kHostile)];
    std::memcpy(mutated.data() + at, &value, random() % 2 == 0 ? 4 : 8);
    outcome.Add(Load(mutated));
  }
  EXPECT_GT(outcome.refused, 3000);
}

TEST(GgufFuzzTest, ManyFlipsCutsAndMovedParts) {
  const Bytes base = ReadFile("bad-gguf/ok-base.gguf");
  const size_t header = HeaderSize();
  Outcome outcome;
  std::mt19937_64 random(2);
  for (int i = 0; i < 6000; ++i) {
    Bytes mutated = base;
    for (uint64_t flips = random() % 8; flips > 0; --flips) {
      mutated[random() % header] = static_cast<uint8_t>(random());
    }
    switch (random() % 3) {
      case 0:  // cut
        mutated.resize(random() % mutated.size());
        break;
      case 1: {  // copy one part over another
        const size_t from = random() % header;
        const size_t to = random() % header;
        const size_t size = std::min<size_t>({random() % 64, header - from, header - to});
        std::memmove(mutated.data() + to, mutated.data() + from, size);
        break;
      }
      default:  // take a part out
        const size_t at = random() % header;
        mutated.erase(mutated.begin() + static_cast<ptrdiff_t>(at),
                      mutated.begin() + static_cast<ptrdiff_t>(at + random() % 16));
    }
    outcome.Add(Load(mutated));
  }
  EXPECT_GT(outcome.refused, 3000);
}

// Models with layers of several kinds and a draft head.
TEST(GgufFuzzTest, NumbersOfHybridsAndDraftHeads) {
  constexpr uint32_t kHostile[] = {0, 1, 2, 3, 5, 64, 0xffff, 0x7fffffff, 0xffffffff};
  Outcome outcome;
  std::mt19937_64 random(4);
  for (const char* path : {"arch/qwen35-mtp/model.gguf", "arch/glm4moe-mtp/model.gguf"}) {
    const Bytes base = ReadFile(path);
    EXPECT_TRUE(Load(base)) << path;
    // Numbers of metadata stand before the vocabulary, those of shapes after it.
    const std::string text(base.begin(), base.end());
    const size_t vocabulary = text.find("tokenizer.ggml.tokens");
    const size_t table = text.find("token_embd.weight");
    const size_t end = text.rfind(".weight");
    ASSERT_LT(vocabulary, table);
    ASSERT_LT(table, end);
    for (int i = 0; i < 1500; ++i) {
      Bytes mutated = base;
      const size_t at =
          random() % 2 == 0 ? random() % vocabulary : table + random() % (end - table);
      std::memcpy(mutated.data() + at, &kHostile[random() % std::size(kHostile)], 4);
      outcome.Add(Load(mutated));
    }
  }
  EXPECT_GT(outcome.accepted, 10);
  EXPECT_GT(outcome.refused, 1500);
}

// Bits of the weights may be anything: quantised blocks with wild scales decode to something, and
// nothing traps.
TEST(GgufFuzzTest, WildWeights) {
  Bytes mutated = ReadFile("quant/models/Q4_K_M.gguf");
  std::mt19937_64 random(3);
  const size_t data = mutated.size() / 4;  // well past the header
  for (int i = 0; i < 20; ++i) {
    for (int j = 0; j < 1000; ++j) {
      mutated[data + random() % (mutated.size() - data)] = static_cast<uint8_t>(random());
    }
    EXPECT_TRUE(Load(mutated));
  }
}

}  // namespace
}  // namespace tandem
