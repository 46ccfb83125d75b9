#include "common/net/secure_socket.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <string.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status.h"

namespace tandem::net {
namespace {

constexpr size_t kKeyBytes = 32;
constexpr char kIdentity[] = "tandem";
// Write encrypts up to this much ahead of what the system has taken.
constexpr size_t kUnsentBytes = 64 << 10;
constexpr size_t kReceiveBytes = 256 << 10;
// Of one call of the library.
constexpr size_t kPieceBytes = 64 << 10;

const std::string& KeyOf(SSL* ssl) {
  return *static_cast<const std::string*>(SSL_get_app_data(ssl));
}

unsigned CopyKey(SSL* ssl, unsigned char* out, unsigned room) {
  const std::string& key = KeyOf(ssl);
  if (key.size() > room) return 0;
  memcpy(out, key.data(), key.size());
  return static_cast<unsigned>(key.size());
}

unsigned ClientKey(SSL* ssl, const char*, char* identity, unsigned identity_room,
                   unsigned char* key, unsigned key_room) {
  if (identity_room < sizeof(kIdentity)) return 0;
  memcpy(identity, kIdentity, sizeof(kIdentity));
  return CopyKey(ssl, key, key_room);
}

unsigned ServerKey(SSL* ssl, const char* identity, unsigned char* key, unsigned key_room) {
  return strcmp(identity, kIdentity) == 0 ? CopyKey(ssl, key, key_room) : 0;
}

SSL_CTX* MakeContext() {
  SSL_CTX* const context = SSL_CTX_new(TLS_method());
  TANDEM_CHECK(context != nullptr);
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  // The hash of a key that a callback gives is SHA-256.
  TANDEM_CHECK(SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256") == 1);
  SSL_CTX_set_psk_client_callback(context, &ClientKey);
  SSL_CTX_set_psk_server_callback(context, &ServerKey);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  // Frames carry their length, so a stream that ends without close_notify is no truncation.
  SSL_CTX_set_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  return context;
}

}  // namespace

// What the library reads and writes: the encrypted bytes of a SecureSocket.
struct SocketBio {
  static SecureSocket& Of(BIO* bio) { return *static_cast<SecureSocket*>(BIO_get_data(bio)); }

  static int Write(BIO* bio, const char* bytes, int count) {
    SecureSocket& self = Of(bio);
    const auto* const begin = reinterpret_cast<const uint8_t*>(bytes);
    self.unsent_.insert(self.unsent_.end(), begin, begin + count);
    return count;
  }

  static int Read(BIO* bio, char* out, int count) {
    SecureSocket& self = Of(bio);
    BIO_clear_retry_flags(bio);
    if (self.taken_ == self.received_bytes_ && !Receive(self)) {
      if (self.socket_error_ == 0) BIO_set_retry_read(bio);
      return self.socket_error_ == -1 ? 0 : -1;
    }
    const size_t given = std::min(static_cast<size_t>(count), self.received_bytes_ - self.taken_);
    memcpy(out, self.received_.get() + self.taken_, given);
    self.taken_ += given;
    return static_cast<int>(given);
  }

  // Whether there is more.
  static bool Receive(SecureSocket& self) {
    if (self.socket_error_ != 0) return false;
    self.taken_ = 0;
    const ssize_t got = recv(self.fd(), self.received_.get(), kReceiveBytes, MSG_DONTWAIT);
    self.received_bytes_ = static_cast<size_t>(std::max<ssize_t>(got, 0));
    if (got > 0) return true;
    if (got == 0) {
      self.socket_error_ = -1;
    } else if (errno != EAGAIN && errno != EINTR) {
      self.socket_error_ = errno;
    }
    return false;
  }

  static long Control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

  static BIO_METHOD* Method() {
    static BIO_METHOD* const method = [] {
      BIO_METHOD* const made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
      BIO_meth_set_write(made, &Write);
      BIO_meth_set_read(made, &Read);
      BIO_meth_set_ctrl(made, &Control);
      return made;
    }();
    return method;
  }
};

std::string DrawSharedKey() {
  std::string key(kKeyBytes, '\0');
  TANDEM_CHECK(
      RAND_bytes(reinterpret_cast<unsigned char*>(key.data()), static_cast<int>(key.size())) == 1);
  return key;
}

SecureSocket::SecureSocket(FileDescriptor fd, Options options)
    : fd_(std::move(fd)),
      options_(std::move(options)),
      context_(MakeContext(), &SSL_CTX_free),
      ssl_(SSL_new(context_.get()), &SSL_free),
      received_(new uint8_t[kReceiveBytes]) {
  TANDEM_CHECK(ssl_ != nullptr);
  SSL_set_app_data(ssl_.get(), const_cast<std::string*>(&options_.key));
  BIO* const bio = BIO_new(SocketBio::Method());
  TANDEM_CHECK(bio != nullptr);
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_.get(), bio, bio);
  if (options_.side == Side::kConnects) {
    SSL_set_connect_state(ssl_.get());
  } else {
    SSL_set_accept_state(ssl_.get());
  }
}

SecureSocket::~SecureSocket() = default;

absl::StatusOr<bool> SecureSocket::Handshake() {
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_.get());
  absl::Status status = result == 1 ? absl::OkStatus() : Explain(result);
  // A server without the key can complete the handshake with a certificate, and certificates are
  // not verified here. A session that was reused is one of the key.
  if (result == 1 && SSL_session_reused(ssl_.get()) == 0) {
    status = absl::InvalidArgumentError("TLS: the other side does not have the key");
  }
  TANDEM_ASSIGN_OR_RETURN(const bool sent, Flush());
  TANDEM_RETURN_IF_ERROR(status);
  return result == 1 && sent;
}

absl::StatusOr<size_t> SecureSocket::Write(std::span<const std::byte> bytes) {
  size_t taken = 0;
  while (taken < bytes.size()) {
    if (unsent_.size() - sent_ >= kUnsentBytes) {
      TANDEM_ASSIGN_OR_RETURN(const bool sent, Flush());
      if (!sent) break;
    }
    const size_t piece = std::min(bytes.size() - taken, kPieceBytes);
    ERR_clear_error();
    if (written_since_rekey_ >= options_.rekey_bytes) {
      if (SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED) != 1) {
        return absl::UnavailableError("TLS: the keys can't be changed on a broken connection");
      }
      written_since_rekey_ = 0;
      ++num_rekeys_;
    }
    const int result = SSL_write(ssl_.get(), bytes.data() + taken, static_cast<int>(piece));
    if (result <= 0) {
      TANDEM_RETURN_IF_ERROR(Explain(result));
      break;
    }
    taken += static_cast<size_t>(result);
    written_since_rekey_ += static_cast<uint64_t>(result);
  }
  return taken;
}

absl::StatusOr<bool> SecureSocket::Flush() {
  while (has_unsent()) {
    const ssize_t count =
        send(fd(), unsent_.data() + sent_, unsent_.size() - sent_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return false;
    if (count < 0) return absl::UnavailableError(strerror(errno));
    sent_ += static_cast<size_t>(count);
  }
  unsent_.clear();
  sent_ = 0;
  return true;
}

absl::StatusOr<size_t> SecureSocket::Read(std::span<std::byte> bytes) {
  size_t read = 0;
  while (read < bytes.size()) {
    ERR_clear_error();
    const size_t piece = std::min(bytes.size() - read, kPieceBytes);
    const int result = SSL_read(ssl_.get(), bytes.data() + read, static_cast<int>(piece));
    if (result <= 0) {
      const absl::Status status = Explain(result);
      if (status.ok() || read > 0) break;  // an error comes again
      return status;
    }
    read += static_cast<size_t>(result);
  }
  return read;
}

void SecureSocket::ShutDown() { shutdown(fd(), SHUT_WR); }

absl::Status SecureSocket::Explain(int result) {
  const int error = SSL_get_error(ssl_.get(), result);
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) return absl::OkStatus();
  if (socket_error_ == -1 || error == SSL_ERROR_ZERO_RETURN) {
    return absl::UnavailableError("the connection was closed");
  }
  if (socket_error_ != 0) return absl::UnavailableError(strerror(socket_error_));
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  return absl::InvalidArgumentError(absl::StrCat("TLS: ", reason == nullptr ? "error" : reason));
}

}  // namespace tandem::net
