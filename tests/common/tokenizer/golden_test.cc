// Real vocabularies against the reference engine's ids (see tests/golden/README.md).
//
// The vocabularies are too large for the repository: they lie in the folder that TANDEM_SHARED
// names, and their tests are skipped where it is not set. The tiny byte-level BPE is always there.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "common/gguf/file.h"
#include "common/tokenizer/detokenizer.h"
#include "common/tokenizer/gguf_vocabulary.h"
#include "tests/common/tokenizer/test_vocabulary.h"

namespace tandem::tokenizer {
namespace {

constexpr EncodeOptions kPlain{.add_special = false, .parse_special = false};
constexpr EncodeOptions kWithSpecial{.add_special = true, .parse_special = false};

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

std::unique_ptr<Tokenizer> Load(const std::string& path) {
  auto file = gguf::File::Open(path);
  EXPECT_TRUE(file.ok()) << path << ": " << file.status();
  if (!file.ok()) return nullptr;
  auto tokenizer = MakeTokenizerFromGguf(file->metadata());
  EXPECT_TRUE(tokenizer.ok()) << path << ": " << tokenizer.status();
  return tokenizer.ok() ? *std::move(tokenizer) : nullptr;
}

// Separated by "\n__ggml_vocab_test__\n"; one at the very end starts no further string.
std::vector<std::string> ReadInputs(const std::string& path) {
  const std::string separator = "\n__ggml_vocab_test__\n";
  std::string all = ReadFile(path);
  std::vector<std::string> texts;
  size_t at = 0;
  for (size_t next; (next = all.find(separator, at)) != std::string::npos;) {
    texts.push_back(all.substr(at, next - at));
    at = next + separator.size();
  }
  if (at < all.size()) texts.push_back(all.substr(at));
  return texts;
}

std::vector<std::vector<TokenId>> ReadIds(const std::string& path) {
  std::istringstream lines(ReadFile(path));
  std::vector<std::vector<TokenId>> all;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream numbers(line);
    all.emplace_back(std::istream_iterator<TokenId>(numbers), std::istream_iterator<TokenId>());
  }
  return all;
}

std::string Hex(std::string_view bytes) {
  std::string hex;
  for (char c : bytes) {
    hex += "0123456789abcdef"[static_cast<uint8_t>(c) >> 4];
    hex += "0123456789abcdef"[static_cast<uint8_t>(c) & 15];
  }
  return hex;
}

// Every case of an .extra.json; returns how many there were.
size_t CheckExtra(const Tokenizer& tokenizer, const std::string& path) {
  const auto cases = nlohmann::json::parse(ReadFile(path))["cases"];
  for (const auto& c : cases) {
    const std::string text = c["text"];
    SCOPED_TRACE(text);
    const std::vector<TokenId> ids = c["ids"], ids_with_special = c["ids_with_special"];
    EXPECT_EQ(tokenizer.Encode(text, kPlain).value(), ids);
    EXPECT_EQ(tokenizer.Encode(text, kWithSpecial).value(), ids_with_special);
    std::string bytes;
    for (TokenId id : ids) bytes += tokenizer.TokenBytes(id).value();
    EXPECT_EQ(Hex(bytes), c["decoded_hex"].get<std::string>());
  }
  return cases.size();
}

TEST(TokenizerGolden, TinyBpe) {
  auto tokenizer = Load("tests/golden/arch/llama/model.gguf");
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_GE(CheckExtra(*tokenizer, "tests/common/tokenizer/tiny-bpe.extra.json"), 20u);
}

class RealVocabulary : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const char* shared = std::getenv("TANDEM_SHARED");
    if (shared == nullptr || *shared == '\0') {
      GTEST_SKIP() << "TANDEM_SHARED is not set: no folder with goldens/tokenizers";
    }
    path_ = std::string(shared) + "/goldens/tokenizers/ggml-vocab-" + GetParam() + ".gguf";
    tokenizer_ = Load(path_);
    ASSERT_NE(tokenizer_, nullptr);
  }

  std::string path_;
  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_P(RealVocabulary, EncodesEveryInput) {
  const std::vector<std::string> texts = ReadInputs(path_ + ".inp");
  const std::vector<std::vector<TokenId>> ids = ReadIds(path_ + ".out");
  ASSERT_EQ(texts.size(), 46u);
  ASSERT_EQ(ids.size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(tokenizer_->Encode(texts[i], kPlain).value(), ids[i]) << "string " << i;
  }
}

TEST_P(RealVocabulary, EncodesAndDecodesTheExtraStrings) {
  EXPECT_GE(CheckExtra(*tokenizer_, path_ + ".extra.json"), 20u);
}

TEST_P(RealVocabulary, DecodingUndoesEncoding) {
  std::mt19937 random(20250201);
  for (int i = 0; i < 500; ++i) {
    const std::string text = RandomText(random, 60);
    for (const EncodeOptions& options : {kPlain, kWithSpecial}) {
      const std::vector<TokenId> ids = tokenizer_->Encode(text, options).value();
      EXPECT_EQ(Decode(*tokenizer_, ids, {}).value(), text) << Hex(text);
    }
  }
}

// Plain text never becomes a control token.
TEST_P(RealVocabulary, ControlTokensAreParsedOnlyWhenAsked) {
  for (TokenId id = 0; id < tokenizer_->vocab_size(); ++id) {
    if (!tokenizer_->IsControl(id)) continue;
    const std::string name(tokenizer_->TokenBytes(id).value());
    const std::vector<TokenId> ids = tokenizer_->Encode(name, kPlain).value();
    for (TokenId plain : ids) {
      EXPECT_FALSE(tokenizer_->IsControl(plain)) << name;
    }
    EXPECT_EQ(tokenizer_->Encode(name, {.add_special = false, .parse_special = true}).value(),
              std::vector<TokenId>{id});
  }
}

TEST(TokenizerGolden, Gemma4EndsTurnsAndToolCalls) {
  const char* shared = std::getenv("TANDEM_SHARED");
  if (shared == nullptr || *shared == '\0') {
    GTEST_SKIP() << "TANDEM_SHARED is not set: no folder with goldens/tokenizers";
  }
  auto tokenizer = Load(std::string(shared) + "/goldens/tokenizers/ggml-vocab-gemma-4.gguf");
  ASSERT_NE(tokenizer, nullptr);
  std::vector<std::string> ends;
  for (TokenId id : tokenizer->end_of_generation_ids()) {
    ends.emplace_back(tokenizer->TokenBytes(id).value());
  }
  EXPECT_EQ(ends, (std::vector<std::string>{"<eos>", "<|tool_response>", "<turn|>"}));
  EXPECT_EQ(tokenizer->TokenBytes(tokenizer->special_tokens().eot).value(), "<turn|>");
}

INSTANTIATE_TEST_SUITE_P(All, RealVocabulary,
                         testing::Values("gpt-2", "llama-spm", "phi-3", "deepseek-llm", "gemma-4"),
                         [](const auto& param_info) {
                           std::string name = param_info.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace tandem::tokenizer
