#include "coordinator/listener/refusal_log.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/strings.h"

namespace tandem::coordinator {
namespace {

constexpr size_t kMaxWhatBytes = 80;

}  // namespace

std::string RefusalLog::Add(std::string_view what, std::string_view reason) {
  std::string line;
  {
    MutexLock lock(mutex_);
    if (lines_.Take(clock_.Now()) > Duration::zero()) {
      ++without_line_;
      return "";
    }
    line = absl::StrCat(port_, port_.empty() ? "" : ": ",
                        "refused: ", absl::CHexEscape(Sv(what.substr(0, kMaxWhatBytes))), ": ",
                        Sv(reason));
    if (without_line_ > 0) absl::StrAppend(&line, "; and ", without_line_, " calls before it");
    without_line_ = 0;
  }
  TANDEM_LOG(kWarning) << line;
  return line;
}

}  // namespace tandem::coordinator
