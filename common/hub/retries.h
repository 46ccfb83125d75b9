// Retries: whether and when to try a request again.
#ifndef TANDEM_COMMON_HUB_RETRIES_H_
#define TANDEM_COMMON_HUB_RETRIES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "common/hub/settings.h"

namespace tandem::hub {

class Retries {
 public:
  Retries(const Settings& settings, const Cancelled& cancelled)
      : settings_(settings), cancelled_(cancelled) {}

  // OK when the request may be sent again after it failed with `status`, for which this waits: as
  // the server asked, at least as long as the backoff, at most a minute. Otherwise `status`, or
  // CANCELLED.
  absl::Status Wait(const absl::Status& status, uint32_t retry_after_s);
  // The request failed, but only after some progress: count from the start again.
  void Progressed() { failed_ = 0; }

 private:
  const Settings& settings_;
  const Cancelled& cancelled_;
  int failed_ = 0;
};

// Whether the same request may succeed later.
bool IsTransient(const absl::Status& status);

}  // namespace tandem::hub

#endif  // TANDEM_COMMON_HUB_RETRIES_H_
