// Acceptor: a thread that accepts connections up to a limit. It never stops accepting: a connection
// above the limit gets a GOAWAY and is closed; without free descriptors it tries again after a
// moment.
#ifndef TANDEM_COORDINATOR_LISTENER_ACCEPTOR_H_
#define TANDEM_COORDINATOR_LISTENER_ACCEPTOR_H_

#include <functional>
#include <string>
#include <thread>

#include "common/net/listen_socket.h"
#include "coordinator/listener/connection_limit.h"
#include "coordinator/listener/refusal_log.h"

namespace tandem::coordinator {

class Acceptor {
 public:
  // Takes ownership of a connection's descriptor, on the acceptor's thread.
  using TakeFn = std::function<void(int fd)>;

  // `name` is of the port, for the log.
  Acceptor(std::string name, net::ListenSocket socket, size_t most_connections, TakeFn take);
  // Stops accepting and closes the port.
  ~Acceptor();

 private:
  void Run();
  // Accepts connections that wait, a bounded number. False: no descriptor is free.
  bool AcceptSome(int listening);
  void Refuse(int fd);
  // Waits for a connection, or for the end.
  void Wait(bool for_connections);
  bool Ended() const;

  const std::string name_;
  const net::ListenSocket socket_;
  const TakeFn take_;
  ConnectionLimit limit_;
  RefusalLog refusals_;     // above the limit
  bool was_short_ = false;  // of descriptors: one log line for each time
  int end_read_ = -1;       // readable once the acceptor is to end
  int end_write_ = -1;
  std::thread thread_;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_LISTENER_ACCEPTOR_H_
