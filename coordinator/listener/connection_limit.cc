#include "coordinator/listener/connection_limit.h"

#include <sys/stat.h>

namespace tandem::coordinator {
namespace {

// 0: closed, or no longer a socket.
ino_t SocketInode(int fd) {
  struct stat found {};
  return fstat(fd, &found) == 0 && S_ISSOCK(found.st_mode) ? found.st_ino : 0;
}

}  // namespace

bool ConnectionLimit::Admit(int fd) {
  if (open_.size() >= most_) ForgetClosed();
  if (open_.size() >= most_) return false;
  open_.push_back({.fd = fd, .inode = SocketInode(fd)});
  return true;
}

void ConnectionLimit::ForgetClosed() {
  std::erase_if(open_, [](const Connection& one) { return SocketInode(one.fd) != one.inode; });
}

}  // namespace tandem::coordinator
