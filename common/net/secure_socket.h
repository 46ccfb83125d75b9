// SecureSocket: TLS 1.3 over a socket that never blocks, between processes that share a key: who
// does not have it can neither join, read nor change anything. There are no certificates.
//
// The key is the pre-shared one of RFC 8446, section 2.2, with an ephemeral exchange, so that who
// learns it later can't read what was recorded. AES-128-GCM, whose keys change long before the
// limit of section 5.5. One thread at a time.
#ifndef TANDEM_COMMON_NET_SECURE_SOCKET_H_
#define TANDEM_COMMON_NET_SECURE_SOCKET_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/net/file_descriptor.h"

typedef struct bio_st BIO;
typedef struct ssl_st SSL;
typedef struct ssl_ctx_st SSL_CTX;

namespace tandem::net {

// 256 random bits.
std::string DrawSharedKey();

class SecureSocket {
 public:
  enum class Side { kConnects, kAccepts };
  struct Options {
    Side side = Side::kConnects;
    std::string key;  // of DrawSharedKey
    // Bytes after which the keys of what is sent change: 2^24.5 records of 2^14 bytes are the
    // limit.
    uint64_t rekey_bytes = uint64_t{1} << 36;
  };

  // `fd` is a connected stream socket that does not block.
  SecureSocket(FileDescriptor fd, Options options);
  ~SecureSocket();

  int fd() const { return fd_.get(); }

  // Continues the handshake; true once it is complete. INVALID_ARGUMENT if the peer does not have
  // the key or does not speak TLS 1.3, UNAVAILABLE if it has closed the connection.
  absl::StatusOr<bool> Handshake();
  // Takes as many of `bytes` as have room, which may be none. Flush sends the last of them.
  absl::StatusOr<size_t> Write(std::span<const std::byte> bytes);
  // Sends what was taken; whether the system has all of it.
  absl::StatusOr<bool> Flush();
  // As many bytes as there are, at most `bytes`; 0: none yet. UNAVAILABLE: the other side has left.
  // What was received beyond them no longer shows at the socket: read until there is nothing before
  // waiting for it.
  absl::StatusOr<size_t> Read(std::span<std::byte> bytes);
  // How often the keys of what is sent have changed.
  int num_rekeys() const { return num_rekeys_; }
  // Whether the socket should be watched for room.
  bool has_unsent() const { return sent_ < unsent_.size(); }

  // Closes the sending direction: the peer reads what was sent, and then the end of the stream.
  void ShutDown();

 private:
  friend struct SocketBio;

  // The error of the last call of the library, or what the socket said.
  absl::Status Explain(int result);

  const FileDescriptor fd_;
  const Options options_;
  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context_;
  std::unique_ptr<SSL, void (*)(SSL*)> ssl_;
  // Encrypted.
  std::vector<uint8_t> unsent_;
  size_t sent_ = 0;  // of unsent_
  const std::unique_ptr<uint8_t[]> received_;
  size_t received_bytes_ = 0;
  size_t taken_ = 0;      // of received_bytes_
  int socket_error_ = 0;  // errno; -1: the stream has ended
  uint64_t written_since_rekey_ = 0;
  int num_rekeys_ = 0;
};

}  // namespace tandem::net

#endif  // TANDEM_COMMON_NET_SECURE_SOCKET_H_
