// Vocabularies out of GGUF files, sound and broken.
#include "common/tokenizer/gguf_vocabulary.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/gguf/file.h"

namespace tandem::tokenizer {
namespace {

absl::StatusOr<std::unique_ptr<Tokenizer>> Load(const std::string& name) {
  auto file = gguf::File::Open("tests/golden/bad-gguf/" + name);
  EXPECT_TRUE(file.ok()) << file.status();
  if (!file.ok()) return file.status();
  return MakeTokenizerFromGguf(file->metadata());
}

TEST(GgufVocabulary, ReadsASoundFile) {
  auto tokenizer = Load("ok-base.gguf");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const SpecialTokens& special = (*tokenizer)->special_tokens();
  EXPECT_EQ((*tokenizer)->vocab_size(), 262);
  EXPECT_EQ(special.bos, 259);
  EXPECT_EQ(special.eos, 260);
  EXPECT_EQ(special.padding, 261);
  EXPECT_FALSE(special.add_bos);
  EXPECT_TRUE((*tokenizer)->IsControl(259));
  // Token 258 is " the".
  EXPECT_EQ((*tokenizer)->Encode(" the", {}).value(), std::vector<TokenId>{258});
  EXPECT_EQ((*tokenizer)->TokenBytes(258).value(), " the");
}

void ExpectRefused(const std::string& name, const std::string& part) {
  const absl::Status status = Load(name).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
  const std::string message(status.message());
  EXPECT_NE(message.find(part), std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

TEST(GgufVocabulary, RefusesBrokenFiles) {
  ExpectRefused("tokens-missing.gguf", "tokenizer.ggml.tokens");
  ExpectRefused("tokens-not-strings.gguf", "tokenizer.ggml.tokens");
  ExpectRefused("token-type-short.gguf", "the list of token types has");
  ExpectRefused("eos-out-of-range.gguf", "the eos token id is 2147483648");
}

// Metadata made by hand: a vocabulary of strings laid out as in a file.
class MetadataMaker {
 public:
  void AddString(std::string_view key, std::string_view text) {
    gguf::Value value;
    value.type = gguf::ValueType::kString;
    value.bytes = Keep(std::string(text));
    entries_.push_back({key, value});
  }
  void AddStrings(std::string_view key, const std::vector<std::string>& texts) {
    std::string bytes;
    for (const std::string& text : texts) {
      const uint64_t length = text.size();
      bytes.append(reinterpret_cast<const char*>(&length), sizeof(length));
      bytes += text;
    }
    AddArray(key, gguf::ValueType::kString, bytes, texts.size());
  }
  void AddFloats(std::string_view key, const std::vector<float>& numbers) {
    AddArray(key, gguf::ValueType::kFloat32,
             std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size() * 4),
             numbers.size());
  }
  absl::StatusOr<std::unique_ptr<Tokenizer>> Make() {
    return MakeTokenizerFromGguf(gguf::Metadata::Create(entries_).value());
  }
  VocabularyData Read() { return ReadVocabulary(gguf::Metadata::Create(entries_).value()).value(); }

 private:
  std::span<const std::byte> Keep(std::string bytes) {
    kept_.push_back(std::make_unique<std::string>(std::move(bytes)));
    return std::as_bytes(std::span(kept_.back()->data(), kept_.back()->size()));
  }
  void AddArray(std::string_view key, gguf::ValueType type, std::string bytes, uint64_t count) {
    gguf::Value value;
    value.type = gguf::ValueType::kArray;
    value.bytes = Keep(std::move(bytes));
    value.element_type = type;
    value.count = count;
    entries_.push_back({key, value});
  }

  std::vector<gguf::Entry> entries_;
  std::vector<std::unique_ptr<std::string>> kept_;
};

TEST(GgufVocabulary, ReadsSentencePieceAndTheChatTemplate) {
  MetadataMaker maker;
  maker.AddString("tokenizer.ggml.model", "llama");
  maker.AddStrings("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "\u2581", "a"});
  maker.AddFloats("tokenizer.ggml.scores", {0, 0, 0, -1, -2});
  maker.AddString("tokenizer.chat_template", "{{ messages }}");
  maker.AddString("general.name", "Phi-3 mini");
  auto tokenizer = maker.Make();
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->chat_template(), "{{ messages }}");
  EXPECT_EQ((*tokenizer)->Encode("a", {}).value(), (std::vector<TokenId>{1, 3, 4}));
  EXPECT_TRUE(maker.Read().strip_after_special);
}

TEST(GgufVocabulary, NamesTheKeyThatIsMissing) {
  MetadataMaker maker;
  const auto message = [&] { return std::string(maker.Make().status().message()); };
  EXPECT_NE(message().find("tokenizer.ggml.model"), std::string::npos) << message();
  maker.AddString("tokenizer.ggml.model", "gpt2");
  EXPECT_NE(message().find("tokenizer.ggml.tokens"), std::string::npos) << message();
  maker.AddStrings("tokenizer.ggml.tokens", {"a"});
  EXPECT_NE(message().find("tokenizer.ggml.merges"), std::string::npos) << message();
  maker.AddStrings("tokenizer.ggml.merges", {});
  EXPECT_NE(message().find("pre-tokenizer"), std::string::npos) << message();
  maker.AddString("tokenizer.ggml.pre", "gpt-2");
  EXPECT_TRUE(maker.Make().ok()) << message();
  maker.AddFloats("tokenizer.ggml.scores", {});
  EXPECT_EQ(message(), "tokenizer.ggml.scores is empty");
}

}  // namespace
}  // namespace tandem::tokenizer
