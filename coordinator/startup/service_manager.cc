#include "coordinator/startup/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"

namespace tandem::coordinator {

absl::Status NotifyServiceManager(std::string_view state) {
  const char* variable = std::getenv("NOTIFY_SOCKET");
  if (variable == nullptr) return absl::OkStatus();
  std::string path = variable;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || (path[0] != '/' && path[0] != '@') ||
      path.size() > sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(
        absl::StrCat("NOTIFY_SOCKET: needed an absolute path or @NAME of at most ",
                     sizeof(address.sun_path), " bytes, found '", path, "'"));
  }
  if (path[0] == '@') path[0] = '\0';  // the abstract namespace
  std::memcpy(address.sun_path, path.data(), path.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return absl::UnavailableError(absl::StrCat("NOTIFY_SOCKET: ", strerror(errno)));
  const ssize_t sent = sendto(fd, state.data(), state.size(), MSG_NOSIGNAL,
                              reinterpret_cast<const sockaddr*>(&address), length);
  const int error = errno;
  close(fd);
  if (sent >= 0) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("NOTIFY_SOCKET ", variable, ": ", strerror(error)));
}

absl::Status StartTime::Progressed() {
  constexpr auto kInterval = std::chrono::minutes(1);
  const TimePoint now = clock_.Now();
  if (asked_at_.has_value() && now - *asked_at_ < kInterval) return absl::OkStatus();
  asked_at_ = now;
  return NotifyServiceManager(
      absl::StrCat("EXTEND_TIMEOUT_USEC=", std::chrono::microseconds(kExtension).count()));
}

}  // namespace tandem::coordinator
