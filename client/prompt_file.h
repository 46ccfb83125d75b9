// Prompts as JSON lines: one object per line with `prompt` or `prompt_token_ids` and any sampling
// field.
#ifndef TANDEM_CLIENT_PROMPT_FILE_H_
#define TANDEM_CLIENT_PROMPT_FILE_H_

#include <istream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/tandem/v1/generation.pb.h"

namespace tandem::client {

// One line; its fields override `defaults`. INVALID_ARGUMENT for a line that is not a JSON object,
// has no prompt or two, an unknown field, or a value of a wrong type or range; the message names
// the field.
absl::StatusOr<v1::GenerateRequest> ParsePromptLine(const std::string& line,
                                                    const v1::GenerateRequest& defaults);

// Every non-empty line. Errors begin with "line N: ". INVALID_ARGUMENT when there is no prompt at
// all.
absl::StatusOr<std::vector<v1::GenerateRequest>> ReadPrompts(std::istream& in,
                                                             const v1::GenerateRequest& defaults);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_PROMPT_FILE_H_
