#include "common/tokenizer/pretokenizer.h"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/strings.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace tandem::tokenizer {
namespace {

std::string ErrorText(int error) {
  PCRE2_UCHAR buffer[128];
  pcre2_get_error_message(error, buffer, sizeof(buffer));
  return reinterpret_cast<const char*>(buffer);
}

// State of one matching thread; each Split makes its own.
class Matcher {
 public:
  Matcher()
      : data_(pcre2_match_data_create(1, nullptr)), context_(pcre2_match_context_create(nullptr)) {
    if (!ok()) return;
    // The patterns of our table take time linear in the text, so step limits would only reject long
    // texts.
    pcre2_set_match_limit(context_.get(), std::numeric_limits<uint32_t>::max());
    pcre2_set_depth_limit(context_.get(), std::numeric_limits<uint32_t>::max());
    pcre2_set_heap_limit(context_.get(), std::numeric_limits<uint32_t>::max());
  }

  bool ok() const { return data_ != nullptr && context_ != nullptr; }

  // The first match in `text` from `start` on; begin == end when there is none.
  absl::Status Find(const pcre2_code* code, std::string_view text, size_t start, size_t* begin,
                    size_t* end) {
    // The caller checked the encoding once; PCRE2 would check all of `text` at every match.
    const uint32_t options = PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY;
    int result = Match(code, text, start, options);
    // The JIT's stack is small; the interpreter takes memory from the heap.
    if (result == PCRE2_ERROR_JIT_STACKLIMIT || result == PCRE2_ERROR_MATCHLIMIT) {
      result = Match(code, text, start, options | PCRE2_NO_JIT);
    }
    *begin = *end = text.size();
    if (result == PCRE2_ERROR_NOMATCH) return absl::OkStatus();
    if (result < 0) {
      return absl::ResourceExhaustedError(absl::StrCat("pre-tokenizer: PCRE2 gave up on ",
                                                       text.size(), " bytes: ", ErrorText(result)));
    }
    const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer(data_.get());
    *begin = offsets[0];
    *end = offsets[1];
    return absl::OkStatus();
  }

 private:
  struct FreeData {
    void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  };
  struct FreeContext {
    void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
  };

  int Match(const pcre2_code* code, std::string_view text, size_t start, uint32_t options) {
    return pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), start, options,
                       data_.get(), context_.get());
  }

  std::unique_ptr<pcre2_match_data, FreeData> data_;
  std::unique_ptr<pcre2_match_context, FreeContext> context_;
};

// Appends the matches in `piece` and the gaps between them to `out`.
absl::Status SplitPiece(Matcher& matcher, const pcre2_code* code, std::string_view piece,
                        std::vector<std::string_view>* out) {
  size_t done = 0;
  while (done < piece.size()) {
    size_t begin, end;
    TANDEM_RETURN_IF_ERROR(matcher.Find(code, piece, done, &begin, &end));
    if (begin > done) out->push_back(piece.substr(done, begin - done));
    if (end > begin) out->push_back(piece.substr(begin, end - begin));
    done = end;
  }
  return absl::OkStatus();
}

}  // namespace

void Pretokenizer::FreeCode::operator()(pcre2_real_code_8* code) const { pcre2_code_free(code); }

absl::StatusOr<Pretokenizer> Pretokenizer::Create(const PretokenizerSpec& spec) {
  Pretokenizer pretokenizer;
  for (std::string_view pattern : spec.patterns) {
    int error;
    PCRE2_SIZE offset;
    Code code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), PCRE2_UTF,
                            &error, &offset, nullptr));
    if (code == nullptr) {
      return absl::InternalError(absl::StrCat("pre-tokenizer: pattern \"", Sv(pattern),
                                              "\" at offset ", offset, ": ", ErrorText(error)));
    }
    // Where PCRE2 was built without its JIT, the interpreter gives the same matches.
    pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
    pretokenizer.patterns_.push_back(std::move(code));
  }
  return pretokenizer;
}

absl::StatusOr<std::vector<std::string_view>> Pretokenizer::Split(std::string_view text) const {
  std::vector<std::string_view> pieces;
  if (text.empty()) return pieces;
  Matcher matcher;
  if (!matcher.ok()) return absl::ResourceExhaustedError("pre-tokenizer: PCRE2 got no memory");
  pieces.push_back(text);
  for (const Code& code : patterns_) {
    std::vector<std::string_view> finer;
    finer.reserve(pieces.size());
    for (std::string_view piece : pieces) {
      TANDEM_RETURN_IF_ERROR(SplitPiece(matcher, code.get(), piece, &finer));
    }
    pieces = std::move(finer);
  }
  return pieces;
}

}  // namespace tandem::tokenizer
