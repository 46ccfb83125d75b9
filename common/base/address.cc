#include "common/base/address.h"

#include <arpa/inet.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/strings.h"

namespace tandem {

absl::StatusOr<HostPort> ParseHostPort(std::string_view address) {
  auto bad = [&](const char* why) {
    return absl::InvalidArgumentError(
        absl::StrCat("address '", Sv(address), "' must be HOST:PORT: ", why));
  };
  const size_t colon = address.rfind(':');
  if (colon == std::string_view::npos) return bad("no port");
  std::string_view host = address.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return bad("an IPv6 host is written in brackets");
  }
  if (host.empty()) return bad("no host");
  // Digits only: SimpleAtoi would also take a sign and white space.
  const std::string_view digits = address.substr(colon + 1);
  int port = 0;
  if (digits.find_first_not_of("0123456789") != std::string_view::npos ||
      !absl::SimpleAtoi(Sv(digits), &port) || port > 65535) {
    return bad("the port is a number from 0 to 65535");
  }
  return HostPort{std::string(host), port};
}

bool IsLoopback(std::string_view address) {
  absl::StatusOr<HostPort> parsed = ParseHostPort(address);
  if (!parsed.ok()) return false;
  if (parsed->host == "localhost") return true;
  in_addr v4{};
  if (inet_pton(AF_INET, parsed->host.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  in6_addr v6{};
  return inet_pton(AF_INET6, parsed->host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

std::string WithPort(std::string_view address, int port) {
  return absl::StrCat(Sv(address.substr(0, address.rfind(':'))), ":", port);
}

}  // namespace tandem
