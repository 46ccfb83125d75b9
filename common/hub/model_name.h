// ModelName: a model of a hub by name, hf:OWNER/REPO[@REVISION][:CHOICE].
#ifndef TANDEM_COMMON_HUB_MODEL_NAME_H_
#define TANDEM_COMMON_HUB_MODEL_NAME_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tandem::hub {

// Whether `text` is a whole commit id: 40 hexadecimal digits.
bool IsCommit(std::string_view text);

struct ModelName {
  std::string owner;
  std::string repo;
  std::string revision = "main";  // a branch, a tag or a commit
  // A quantisation, such as "Q4_K_M" in any case, or a GGUF file's path in the repository; empty:
  // the default.
  std::string choice;

  // Whether `text` begins with "hf:": a name, not a path.
  static bool Is(std::string_view text);
  // INVALID_ARGUMENT if `text` is not a name. Owner, repo and revision of a parsed name are safe as
  // parts of file names and URLs.
  static absl::StatusOr<ModelName> Parse(std::string_view text);

  // "OWNER/REPO".
  std::string Repository() const;
  // Whether the revision is a commit: what it means never changes.
  bool pinned() const;
  // "hf:OWNER/REPO[@REVISION][:CHOICE]", without the main revision.
  std::string Text() const;
};

}  // namespace tandem::hub

#endif  // TANDEM_COMMON_HUB_MODEL_NAME_H_
