// Grammars of texts that are one of several, or match a regular expression.
#ifndef TANDEM_COORDINATOR_GRAMMAR_TEXT_FORMS_H_
#define TANDEM_COORDINATOR_GRAMMAR_TEXT_FORMS_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/grammar/expression.h"

namespace tandem::coordinator::grammar {

inline constexpr size_t kMaxChoices = 4096;
inline constexpr size_t kMaxChoiceBytes = 256 << 10;  // of all

// INVALID_ARGUMENT: none, more than the bounds, an empty one, or one that is not UTF-8.
absl::StatusOr<Grammar> GrammarOfChoices(const std::vector<std::string>& texts);

// Of what matches as a whole. INVALID_ARGUMENT as ExpressionOfRegex says (regex.h).
absl::StatusOr<Grammar> GrammarOfRegex(std::string_view pattern);

}  // namespace tandem::coordinator::grammar

#endif  // TANDEM_COORDINATOR_GRAMMAR_TEXT_FORMS_H_
