#include "common/base/status.h"

#include "absl/strings/str_cat.h"

namespace tandem {

absl::Status Annotate(const absl::Status& status, const std::string& context) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(context, ": ", status.message()));
}

}  // namespace tandem
