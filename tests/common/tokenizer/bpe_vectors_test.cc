// Ids of small vocabularies against those of Hugging Face's `tokenizers` (make_bpe_vectors.py).
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/tokenizer/make_tokenizer.h"

namespace tandem::tokenizer {
namespace {

TEST(BpeVectors, IdsAreThoseOfTheIndependentImplementation) {
  std::ifstream in("tests/common/tokenizer/bpe_vectors.json");
  const auto vectors = nlohmann::json::parse(in);
  const std::vector<std::string> texts = vectors["texts"];
  ASSERT_GE(texts.size(), 60u);
  ASSERT_EQ(vectors["vocabularies"].size(), 5u);
  for (const auto& [name, vocabulary] : vectors["vocabularies"].items()) {
    VocabularyData data;
    data.model = "gpt2";
    data.pre = name;
    data.tokens = vocabulary["tokens"].get<std::vector<std::string>>();
    data.merges = vocabulary["merges"].get<std::vector<std::string>>();
    data.add_bos = false;
    const auto tokenizer = MakeTokenizer(data);
    ASSERT_TRUE(tokenizer.ok()) << name << ": " << tokenizer.status();
    const auto& ids = vocabulary["ids"];
    ASSERT_EQ(ids.size(), texts.size()) << name;
    for (size_t i = 0; i < texts.size(); ++i) {
      EXPECT_EQ((*tokenizer)->Encode(texts[i], {}).value(), ids[i].get<std::vector<TokenId>>())
          << name << ": " << texts[i];
    }
  }
}

}  // namespace
}  // namespace tandem::tokenizer
