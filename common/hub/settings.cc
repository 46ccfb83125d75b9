#include "common/hub/settings.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/strings.h"
#include "common/hub/url.h"

namespace tandem::hub {
namespace {

constexpr uint32_t kMaxTimeoutSeconds = 3600;

// Empty if unset.
std::string Value(const Environment& environment, const char* name) {
  const char* value = environment(name);
  return value == nullptr ? std::string() : std::string(absl::StripAsciiWhitespace(value));
}

bool IsTrue(const std::string& value) {
  const std::string upper = absl::AsciiStrToUpper(value);
  return upper == "1" || upper == "ON" || upper == "YES" || upper == "TRUE";
}

absl::StatusOr<std::string> CacheFolder(const Environment& environment) {
  const std::string home = Value(environment, "HOME");
  const auto expanded = [&](const std::string& path) {
    return path.starts_with("~/") ? absl::StrCat(home, path.substr(1)) : path;
  };
  if (const std::string cache = Value(environment, "HF_HUB_CACHE"); !cache.empty()) {
    return expanded(cache);
  }
  if (const std::string hf_home = Value(environment, "HF_HOME"); !hf_home.empty()) {
    return absl::StrCat(expanded(hf_home), "/hub");
  }
  if (const std::string xdg = Value(environment, "XDG_CACHE_HOME"); !xdg.empty()) {
    return absl::StrCat(expanded(xdg), "/huggingface/hub");
  }
  if (!home.empty()) return absl::StrCat(home, "/.cache/huggingface/hub");
  return absl::InvalidArgumentError(
      "no folder for models: none of HF_HUB_CACHE, HF_HOME, XDG_CACHE_HOME and HOME is set");
}

}  // namespace

absl::StatusOr<Settings> SettingsFrom(const Environment& environment) {
  Settings settings;
  TANDEM_ASSIGN_OR_RETURN(settings.cache, CacheFolder(environment));
  settings.offline = IsTrue(Value(environment, "HF_HUB_OFFLINE"));
  if (std::string endpoint = Value(environment, "HF_ENDPOINT"); !endpoint.empty()) {
    while (endpoint.ends_with('/')) endpoint.pop_back();
    TANDEM_RETURN_IF_ERROR(Annotate(Url::Parse(endpoint).status(), "HF_ENDPOINT"));
    if (endpoint.find_first_of("?#") != endpoint.npos) {
      return absl::InvalidArgumentError("HF_ENDPOINT must not have a query or a fragment");
    }
    settings.endpoint = std::move(endpoint);
  }
  settings.token = Value(environment, "HF_TOKEN");
  if (!std::all_of(settings.token.begin(), settings.token.end(), absl::ascii_isgraph)) {
    return absl::InvalidArgumentError("HF_TOKEN has a blank or a control character in it");
  }
  if (const std::string text = Value(environment, "HF_HUB_DOWNLOAD_TIMEOUT"); !text.empty()) {
    uint32_t seconds = 0;
    if (!absl::SimpleAtoi(text, &seconds) || seconds < 1 || seconds > kMaxTimeoutSeconds) {
      return absl::InvalidArgumentError(
          absl::StrCat("HF_HUB_DOWNLOAD_TIMEOUT: needed 1 to ", kMaxTimeoutSeconds, " seconds"));
    }
    settings.stall_timeout = std::chrono::seconds(seconds);
  }
  return settings;
}

absl::StatusOr<Settings> SettingsFromEnvironment() {
  return SettingsFrom([](const char* name) { return std::getenv(name); });
}

}  // namespace tandem::hub
