// SlowTokenizer: one that takes a long time over long texts.
#ifndef TANDEM_TESTS_COORDINATOR_API_SLOW_TOKENIZER_H_
#define TANDEM_TESTS_COORDINATOR_API_SLOW_TOKENIZER_H_

#include <future>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "common/tokenizer/tokenizer.h"

namespace tandem::coordinator {

// Texts above kLong are held until Release.
class SlowTokenizer : public tokenizer::Tokenizer {
 public:
  explicit SlowTokenizer(std::shared_ptr<const tokenizer::Tokenizer> quick)
      : quick_(std::move(quick)) {}

  absl::StatusOr<std::vector<TokenId>> Encode(
      std::string_view text, const tokenizer::EncodeOptions& options) const override {
    if (text.size() > kLong) {
      std::call_once(once_, [this] { started_.set_value(); });
      released_.wait();
    }
    return quick_->Encode(text, options);
  }
  absl::StatusOr<std::string_view> TokenBytes(TokenId id) const override {
    return quick_->TokenBytes(id);
  }
  int32_t vocab_size() const override { return quick_->vocab_size(); }
  const tokenizer::SpecialTokens& special_tokens() const override {
    return quick_->special_tokens();
  }
  bool IsEndOfGeneration(TokenId id) const override { return quick_->IsEndOfGeneration(id); }
  const std::vector<TokenId>& end_of_generation_ids() const override {
    return quick_->end_of_generation_ids();
  }
  bool IsControl(TokenId id) const override { return quick_->IsControl(id); }
  bool adds_space_prefix() const override { return quick_->adds_space_prefix(); }
  std::string_view chat_template() const override { return quick_->chat_template(); }

  static constexpr size_t kLong = 1 << 20;
  void AwaitStart() const { started_.get_future().wait(); }
  void Release() const { release_.set_value(); }

 private:
  const std::shared_ptr<const tokenizer::Tokenizer> quick_;
  mutable std::once_flag once_;
  mutable std::promise<void> started_, release_;
  const std::shared_future<void> released_ = release_.get_future().share();
};

}  // namespace tandem::coordinator

#endif  // TANDEM_TESTS_COORDINATOR_API_SLOW_TOKENIZER_H_
