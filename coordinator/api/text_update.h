// TextUpdate: an update of a request with its text, ready for the wire. Plain data.
#ifndef TANDEM_COORDINATOR_API_TEXT_UPDATE_H_
#define TANDEM_COORDINATOR_API_TEXT_UPDATE_H_

#include <optional>
#include <string>

#include "coordinator/engine/request.h"

namespace tandem::coordinator {

// Log-probabilities (a token's own and its top ones count alike) that one Take hands out: about 1
// MB on the wire, where gRPC's clients refuse more than 4 MB.
inline constexpr size_t kMaxLogprobsPerTake = 50'000;

struct TextUpdate : StreamUpdate {
  std::string text;

  // Gathers what came next; nothing comes after the last.
  void Append(TextUpdate next);
  // Everything that has gathered, or its beginning where log-probabilities are many: then the rest
  // is there for the next Take. Nothing before there is a token or the end.
  std::optional<TextUpdate> Take();
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_TEXT_UPDATE_H_
