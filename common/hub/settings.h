// Settings: where a hub and its cache are, and how long to wait for them. The environment variables
// are those of Python's huggingface_hub, so that both use the same files.
#ifndef TANDEM_COMMON_HUB_SETTINGS_H_
#define TANDEM_COMMON_HUB_SETTINGS_H_

#include <chrono>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/clock.h"

namespace tandem::hub {

// Polled during waits and transfers; true ends them with CANCELLED.
using Cancelled = std::function<bool()>;

struct Settings {
  std::string endpoint = "https://huggingface.co";  // HF_ENDPOINT; no slash at the end
  std::string cache;     // HF_HUB_CACHE, else $HF_HOME/hub, else ~/.cache/huggingface/hub
  std::string token;     // HF_TOKEN; sent to the endpoint only, never printed
  bool offline = false;  // HF_HUB_OFFLINE
  Duration connect_timeout = std::chrono::seconds(10);
  // For the next KiB; HF_HUB_DOWNLOAD_TIMEOUT.
  Duration stall_timeout = std::chrono::seconds(10);
  // For another process that fetches the same file and makes no progress.
  Duration lock_timeout = std::chrono::minutes(10);
  int attempts = 5;                                   // in a row without progress
  Duration backoff = std::chrono::milliseconds(500);  // after the first; doubles
  // Called for each piece of a file that comes, here or at another process that fetches the same.
  std::function<void()> on_progress{};
};

// The value of an environment variable; null if there is none.
using Environment = std::function<const char*(const char* name)>;

// INVALID_ARGUMENT naming the variable.
absl::StatusOr<Settings> SettingsFrom(const Environment& environment);
// From this process's environment.
absl::StatusOr<Settings> SettingsFromEnvironment();

}  // namespace tandem::hub

#endif  // TANDEM_COMMON_HUB_SETTINGS_H_
