#include "coordinator/grammar/text_forms.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/utf8.h"
#include "coordinator/grammar/regex.h"

namespace tandem::coordinator::grammar {

absl::StatusOr<Grammar> GrammarOfChoices(const std::vector<std::string>& texts) {
  if (texts.empty() || texts.size() > kMaxChoices) {
    return absl::InvalidArgumentError(
        absl::StrCat(texts.size(), " choices, need 1 to ", kMaxChoices));
  }
  Expression choice = Choice({});
  size_t bytes = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].empty())
      return absl::InvalidArgumentError(absl::StrCat("choice ", i, " is empty"));
    if (ValidUtf8Prefix(texts[i]) != texts[i].size()) {
      return absl::InvalidArgumentError(absl::StrCat("choice ", i, " is not UTF-8"));
    }
    bytes += texts[i].size();
    if (bytes > kMaxChoiceBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("the choices have more than ", kMaxChoiceBytes, " bytes"));
    }
    choice.parts.push_back(Text(texts[i]));
  }
  Grammar grammar;
  grammar.rules.push_back(std::move(choice));
  return grammar;
}

absl::StatusOr<Grammar> GrammarOfRegex(std::string_view pattern) {
  TANDEM_ASSIGN_OR_RETURN(Expression expression, ExpressionOfRegex(pattern, RegexUse::kWhole));
  Grammar grammar;
  grammar.rules.push_back(std::move(expression));
  return grammar;
}

}  // namespace tandem::coordinator::grammar
