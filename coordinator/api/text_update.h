// TextUpdate: an update of a request with its text, ready for the wire. Plain data.
#ifndef TANDEM_COORDINATOR_API_TEXT_UPDATE_H_
#define TANDEM_COORDINATOR_API_TEXT_UPDATE_H_

#include <optional>
#include <string>
#include <variant>

#include "coordinator/engine/request.h"

namespace tandem::coordinator {

// Log-probabilities (a token's own and its top ones count alike) returned by one Take: about 1 MB
// on the wire; gRPC clients reject more than 4 MB.
inline constexpr size_t kMaxLogprobsPerTake = 50'000;

struct TextUpdate : StreamUpdate {
  // A stop string, or the last id.
  using Matched = std::variant<std::monostate, std::string, TokenId>;

  std::string text;
  Matched matched_stop{};  // on the last one, with kStop

  // About the memory of text, ids and log-probabilities of generated tokens.
  size_t GeneratedBytes() const;
  // Appends the next update; none comes after the last.
  void Append(TextUpdate next);
  // Everything accumulated or, if it has many log-probabilities, its beginning: the rest is for the
  // next Take; so is an error after tokens. None before there is a token or the end.
  std::optional<TextUpdate> Take();
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_TEXT_UPDATE_H_
