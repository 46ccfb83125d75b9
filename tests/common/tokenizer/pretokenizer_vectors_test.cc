// Our words against those of Hugging Face's `tokenizers`, run with the published settings of each
// family (make_pretokenizer_vectors.py).
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/tokenizer/pretokenizer.h"

namespace tandem::tokenizer {
namespace {

TEST(PretokenizerVectors, PiecesAreThoseOfTheIndependentImplementation) {
  std::ifstream in("tests/common/tokenizer/pretokenizer_vectors.json");
  const auto vectors = nlohmann::json::parse(in);
  const std::vector<std::string> texts = vectors["texts"];
  ASSERT_EQ(texts.size(), 150u);
  ASSERT_EQ(vectors["piece_bytes"].size(), 15u);
  for (const auto& [name, lists] : vectors["piece_bytes"].items()) {
    const PretokenizerSpec* spec = FindPretokenizer(name);
    ASSERT_NE(spec, nullptr) << name;
    const Pretokenizer pretokenizer = Pretokenizer::Create(*spec).value();
    ASSERT_EQ(lists.size(), texts.size()) << name;
    for (size_t i = 0; i < texts.size(); ++i) {
      std::vector<size_t> found;
      const auto words = pretokenizer.Split(texts[i]).value();
      for (std::string_view word : words) found.push_back(word.size());
      EXPECT_EQ(found, lists[i].get<std::vector<size_t>>()) << name << ": " << texts[i];
    }
  }
}

}  // namespace
}  // namespace tandem::tokenizer
