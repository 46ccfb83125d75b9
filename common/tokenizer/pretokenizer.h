// Cuts a text into the words that byte-level BPE merges within, with PCRE2 patterns.
#ifndef TANDEM_COMMON_TOKENIZER_PRETOKENIZER_H_
#define TANDEM_COMMON_TOKENIZER_PRETOKENIZER_H_

#include <memory>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/tokenizer/pretokenizer_patterns.h"

struct pcre2_real_code_8;

namespace tandem::tokenizer {

// Immutable and thread-safe.
class Pretokenizer {
 public:
  // INTERNAL when a pattern of `spec` does not compile.
  static absl::StatusOr<Pretokenizer> Create(const PretokenizerSpec& spec);

  Pretokenizer(Pretokenizer&&) = default;
  Pretokenizer& operator=(Pretokenizer&&) = default;

  // The words of `text`, in order; together they are all of `text`. REQUIRES: `text` is valid
  // UTF-8. RESOURCE_EXHAUSTED when PCRE2 gets no memory.
  absl::StatusOr<std::vector<std::string_view>> Split(std::string_view text) const;

 private:
  struct FreeCode {
    void operator()(pcre2_real_code_8* code) const;
  };
  using Code = std::unique_ptr<pcre2_real_code_8, FreeCode>;

  Pretokenizer() = default;

  std::vector<Code> patterns_;
};

}  // namespace tandem::tokenizer

#endif  // TANDEM_COMMON_TOKENIZER_PRETOKENIZER_H_
