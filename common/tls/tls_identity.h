// TlsIdentity: a program's certificate and key and the authorities that it trusts, read again when
// their files change.
#ifndef TANDEM_COMMON_TLS_TLS_IDENTITY_H_
#define TANDEM_COMMON_TLS_TLS_IDENTITY_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/base/watched_file.h"
#include "common/tls/tls_files.h"

namespace tandem {

// PEM texts; empty where no file was named.
struct TlsPem {
  std::string cert;
  std::string key;
  std::string ca;
};

// Thread-safe.
class TlsIdentity {
 public:
  // REQUIRES: `files` has a certificate if and only if it has a key. INVALID_ARGUMENT with the
  // flag, the path and what is wrong: not readable, not PEM, ended, a key of another certificate.
  static absl::StatusOr<std::shared_ptr<TlsIdentity>> Open(const TlsFlags& flags,
                                                           const TlsFiles& files);

  // What the files hold now. While that is unusable, as between the changes of two files, what they
  // held before; the log says so, once for each change.
  std::shared_ptr<const TlsPem> Current();
  // Whether the other side must have a certificate.
  bool has_ca() const { return ca_.has_value(); }

 private:
  TlsIdentity(const TlsFlags& flags, const TlsFiles& files);
  absl::StatusOr<TlsPem> Read() TANDEM_REQUIRES(mutex_);
  bool Changed() const TANDEM_REQUIRES(mutex_);

  Mutex mutex_;
  std::optional<WatchedFile> cert_;
  std::optional<WatchedFile> key_;
  std::optional<WatchedFile> ca_;
  std::shared_ptr<const TlsPem> current_ TANDEM_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_COMMON_TLS_TLS_IDENTITY_H_
