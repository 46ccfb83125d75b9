// ModelName: a model of a hub by name, hf:OWNER/REPO[:CHOICE].
#ifndef TANDEM_COMMON_HUB_MODEL_NAME_H_
#define TANDEM_COMMON_HUB_MODEL_NAME_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tandem::hub {

struct ModelName {
  std::string owner;
  std::string repo;
  // A quantisation, such as "Q4_K_M" in any case, or a GGUF file's path in the repository; empty:
  // the default.
  std::string choice;

  // Whether `text` begins with "hf:": a name, not a path.
  static bool Is(std::string_view text);
  // INVALID_ARGUMENT if `text` is not a name. Owner and repo of a parsed name are safe as parts of
  // file names and URLs.
  static absl::StatusOr<ModelName> Parse(std::string_view text);

  // "OWNER/REPO".
  std::string Repository() const;
  // "hf:OWNER/REPO[:CHOICE]".
  std::string Text() const;
};

}  // namespace tandem::hub

#endif  // TANDEM_COMMON_HUB_MODEL_NAME_H_
