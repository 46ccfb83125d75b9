// TCP connections that never block: to numeric addresses, and of a listening socket.
#ifndef TANDEM_COMMON_NET_STREAM_SOCKET_H_
#define TANDEM_COMMON_NET_STREAM_SOCKET_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/net/file_descriptor.h"
#include "common/net/listen_socket.h"

namespace tandem::net {

// The numeric addresses of this machine's interfaces that are up, without ports, those of IPv6 in
// brackets. Loopback's come last; addresses of a link alone (fe80::/10) are left out, as they mean
// nothing without an interface.
std::vector<std::string> InterfaceHosts();
// The numeric HOST:PORTs at which a listening socket is reached; for one that listens on any
// address those of all interfaces, and loopback's only if there are no others.
std::vector<std::string> ReachableAddresses(const ListenSocket& listening);

// Begins to connect to a numeric HOST:PORT; ConnectResult says when it has. INVALID_ARGUMENT for a
// name, UNAVAILABLE with the system's reason.
absl::StatusOr<FileDescriptor> StartConnect(const std::string& address);
// Whether the connection stands, once poll() says that the socket can be written, or UNAVAILABLE
// with the system's reason.
absl::Status ConnectResult(const FileDescriptor& socket);

// Whether the other machine has acknowledged nothing for 10 s of what is under way. One that lives
// does, whether or not its program reads. Where nothing is under way the system probes connections
// made here, and ends them after 10 s without an answer.
bool IsUnanswered(int fd);

// The next connection that waits at a listening socket; none (-1) if none waits.
FileDescriptor AcceptWaiting(int listening);

}  // namespace tandem::net

#endif  // TANDEM_COMMON_NET_STREAM_SOCKET_H_
