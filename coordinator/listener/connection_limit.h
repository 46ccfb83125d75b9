// ConnectionLimit: how many accepted connections are open, without a word from their owner: a
// descriptor that was closed, or that is another file now, has another inode.
#ifndef TANDEM_COORDINATOR_LISTENER_CONNECTION_LIMIT_H_
#define TANDEM_COORDINATOR_LISTENER_CONNECTION_LIMIT_H_

#include <sys/types.h>

#include <cstddef>
#include <vector>

namespace tandem::coordinator {

// Not thread-safe: the accepting thread owns it.
class ConnectionLimit {
 public:
  explicit ConnectionLimit(size_t most) : most_(most) {}

  // Counts the socket `fd`; false if `most` others are open.
  bool Admit(int fd);
  size_t most() const { return most_; }

 private:
  struct Connection {
    int fd;
    ino_t inode;
  };
  void ForgetClosed();

  const size_t most_;
  std::vector<Connection> open_;  // or closed since the last ForgetClosed
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_LISTENER_CONNECTION_LIMIT_H_
