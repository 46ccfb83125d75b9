// TextOrIds: what a client gives of a text: the text itself, or its token ids.
#ifndef TANDEM_COORDINATOR_API_TEXT_OR_IDS_H_
#define TANDEM_COORDINATOR_API_TEXT_OR_IDS_H_

#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/tokenizer/tokenizer.h"

namespace tandem::coordinator {

// Unchecked. monostate: neither was given.
using TextOrIds = std::variant<std::monostate, std::string, std::vector<TokenId>>;

// The ids; none of an empty text, to which Encode would add BOS. INVALID_ARGUMENT if
// neither was given; what Tokenizer::Encode says of a text.
absl::StatusOr<std::vector<TokenId>> IdsOf(TextOrIds content, const tokenizer::Tokenizer& tokenizer,
                                           const tokenizer::EncodeOptions& options);

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_TEXT_OR_IDS_H_
