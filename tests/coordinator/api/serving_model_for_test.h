// A ServingModel over a byte-level vocabulary made by hand: token ids 0 to 255 are bytes.
#ifndef TANDEM_TESTS_COORDINATOR_API_SERVING_MODEL_FOR_TEST_H_
#define TANDEM_TESTS_COORDINATOR_API_SERVING_MODEL_FOR_TEST_H_

#include <memory>
#include <string>
#include <vector>

#include "common/tokenizer/make_tokenizer.h"
#include "coordinator/api/serving_model.h"
#include "tests/common/tokenizer/test_vocabulary.h"

namespace tandem::coordinator {

inline constexpr TokenId kBos = 256;
inline constexpr TokenId kEos = 257;
inline constexpr uint32_t kVocabulary = 259;
inline constexpr uint32_t kHead = 264;  // the head is padded
inline constexpr uint32_t kMaxModelLen = 100;
inline constexpr uint32_t kHidden = 6;

inline ServingModel ServingModelForTest() {
  tokenizer::VocabularyData data = tokenizer::ByteLevelVocabulary({});
  data.add_bos = true;
  data.chat_template = "{{ messages }}";
  const std::shared_ptr<const tokenizer::Tokenizer> tokenizer =
      tokenizer::MakeTokenizer(std::move(data)).value();
  return {.name = "test model",
          .architecture = "llama",
          .quantization = "F32",
          .max_model_len = kMaxModelLen,
          .vocab_size = kHead,
          .hidden_size = kHidden,
          .tensor_parallel_size = 2,
          .tokenizer = tokenizer,
          .grammars = std::make_shared<GrammarCache>(tokenizer, kHead)};
}

inline std::vector<TokenId> Bytes(const std::string& text) {
  std::vector<TokenId> ids;
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  return ids;
}

}  // namespace tandem::coordinator

#endif  // TANDEM_TESTS_COORDINATOR_API_SERVING_MODEL_FOR_TEST_H_
