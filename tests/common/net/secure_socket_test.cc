#include "common/net/secure_socket.h"

#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace tandem::net {
namespace {

using Side = SecureSocket::Side;

// Both ends of a connection, in one thread: nothing blocks.
struct Pair {
  explicit Pair(const std::string& own_key, const std::string& other_key,
                uint64_t rekey_bytes = uint64_t{1} << 36) {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    raw = fds[1];
    own = std::make_unique<SecureSocket>(
        FileDescriptor(fds[0]),
        SecureSocket::Options{.side = Side::kConnects, .key = own_key, .rekey_bytes = rekey_bytes});
    other = std::make_unique<SecureSocket>(
        FileDescriptor(fds[1]), SecureSocket::Options{.side = Side::kAccepts, .key = other_key});
  }

  // The first error of either end.
  absl::Status Handshake() {
    bool own_done = false, other_done = false;
    for (int round = 0; round < 10 && !(own_done && other_done); ++round) {
      for (auto& [end, done] : {std::pair(own.get(), &own_done), {other.get(), &other_done}}) {
        if (*done) continue;
        const auto result = end->Handshake();
        if (!result.ok()) return result.status();
        *done = *result;
      }
    }
    return own_done && other_done ? absl::OkStatus() : absl::DeadlineExceededError("not done");
  }

  int raw = -1;  // the other end's
  std::unique_ptr<SecureSocket> own, other;
};

std::vector<std::byte> Pattern(size_t count) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
  return bytes;
}

// What `from` sends as `to` receives it, however little the sockets take at a time.
std::vector<std::byte> Carry(SecureSocket& from, SecureSocket& to,
                             const std::vector<std::byte>& sent) {
  std::vector<std::byte> received(sent.size());
  size_t written = 0, read = 0;
  while (read < received.size()) {
    const auto taken = from.Write(std::span(sent).subspan(written));
    const auto flushed = from.Flush();
    const auto got = to.Read(std::span(received).subspan(read));
    if (!taken.ok() || !flushed.ok() || !got.ok()) {
      ADD_FAILURE() << taken.status() << flushed.status() << got.status();
      break;
    }
    written += *taken;
    read += *got;
  }
  return received;
}

TEST(SecureSocketTest, CarriesBytesBothWays) {
  const std::string key = DrawSharedKey();
  Pair pair(key, key);
  ASSERT_EQ(pair.Handshake(), absl::OkStatus());
  for (const size_t count : {0, 1, 1000, 16384, 16385, 3000000}) {
    const std::vector<std::byte> bytes = Pattern(count);
    EXPECT_TRUE(Carry(*pair.own, *pair.other, bytes) == bytes) << count;
    EXPECT_TRUE(Carry(*pair.other, *pair.own, bytes) == bytes) << count;
  }
}

TEST(SecureSocketTest, WriteTakesNoMoreThanThereIsRoomFor) {
  const std::string key = DrawSharedKey();
  Pair pair(key, key);
  ASSERT_EQ(pair.Handshake(), absl::OkStatus());
  const std::vector<std::byte> bytes = Pattern(16 << 20);
  size_t all = 0;
  for (size_t taken = 1; taken > 0; all += taken) taken = pair.own->Write(bytes).value();
  EXPECT_LT(all, bytes.size());
  EXPECT_TRUE(pair.own->has_unsent());
}

TEST(SecureSocketTest, KeysChangeOnTheWay) {
  const std::string key = DrawSharedKey();
  Pair pair(key, key, /*rekey_bytes=*/10000);
  ASSERT_EQ(pair.Handshake(), absl::OkStatus());
  const std::vector<std::byte> bytes = Pattern(1000000);
  EXPECT_TRUE(Carry(*pair.own, *pair.other, bytes) == bytes);
  EXPECT_TRUE(Carry(*pair.other, *pair.own, bytes) == bytes);
  EXPECT_GT(pair.own->num_rekeys(), 10);
  EXPECT_EQ(pair.other->num_rekeys(), 0);
}

// A TLS 1.3 server with a self-signed certificate and without the key.
class CertifiedServer {
 public:
  explicit CertifiedServer(int fd) : context_(SSL_CTX_new(TLS_server_method())) {
    EVP_PKEY* const key = EVP_EC_gen("P-256");
    X509* const certificate = X509_new();
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    EXPECT_GT(X509_sign(certificate, key, EVP_sha256()), 0);
    EXPECT_EQ(SSL_CTX_use_certificate(context_, certificate), 1);
    EXPECT_EQ(SSL_CTX_use_PrivateKey(context_, key), 1);
    X509_free(certificate);
    EVP_PKEY_free(key);
    ssl_ = SSL_new(context_);
    SSL_set_fd(ssl_, fd);
  }
  ~CertifiedServer() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
  }
  bool Accept() { return SSL_accept(ssl_) == 1; }

 private:
  SSL_CTX* const context_;
  SSL* ssl_ = nullptr;
};

TEST(SecureSocketTest, AServerWithoutTheKeyIsRefusedWhateverItShows) {
  Pair pair(DrawSharedKey(), DrawSharedKey());
  CertifiedServer server(pair.raw);
  absl::StatusOr<bool> done = pair.own->Handshake();
  for (int round = 0; round < 10 && done.ok() && !*done; ++round) {
    server.Accept();
    done = pair.own->Handshake();
  }
  EXPECT_EQ(done.status().message(), "TLS: the other side does not have the key");
}

TEST(SecureSocketTest, AnotherKeyIsRefused) {
  Pair pair(DrawSharedKey(), DrawSharedKey());
  EXPECT_EQ(pair.Handshake().code(), absl::StatusCode::kInvalidArgument);
}

TEST(SecureSocketTest, KeysAreDrawn) { EXPECT_NE(DrawSharedKey(), DrawSharedKey()); }

TEST(SecureSocketTest, WhatIsNoTlsIsRefused) {
  const std::string key = DrawSharedKey();
  Pair pair(key, key);
  const char text[] = "GET / HTTP/1.1\r\n\r\n";
  ASSERT_GT(send(pair.raw, text, sizeof(text) - 1, 0), 0);
  EXPECT_EQ(pair.own->Handshake().status().code(), absl::StatusCode::kInvalidArgument);
}

// Nothing of the text is on the wire.
TEST(SecureSocketTest, WhatIsSentIsEncrypted) {
  const std::string key = DrawSharedKey();
  Pair pair(key, key);
  ASSERT_EQ(pair.Handshake(), absl::OkStatus());
  const std::string secret = "activations of a prompt";
  ASSERT_TRUE(pair.own->Write(std::as_bytes(std::span(secret))).ok());
  ASSERT_TRUE(pair.own->Flush().value());
  std::string wire(4096, '\0');
  const ssize_t count = recv(pair.raw, wire.data(), wire.size(), 0);
  ASSERT_GT(count, static_cast<ssize_t>(secret.size()));
  EXPECT_EQ(wire.find("activations"), std::string::npos);
}

TEST(SecureSocketTest, AnEndThatLeavesIsAnErrorBehindWhatItSent) {
  const std::string key = DrawSharedKey();
  Pair pair(key, key);
  ASSERT_EQ(pair.Handshake(), absl::OkStatus());
  const std::vector<std::byte> bytes = Pattern(100);
  ASSERT_EQ(pair.own->Write(bytes).value(), 100u);
  ASSERT_TRUE(pair.own->Flush().value());
  pair.own.reset();
  std::vector<std::byte> received(200);
  EXPECT_EQ(pair.other->Read(received).value(), 100u);
  EXPECT_EQ(pair.other->Read(received).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(pair.other->Write(bytes).ok() && pair.other->Flush().ok());
}

}  // namespace
}  // namespace tandem::net
