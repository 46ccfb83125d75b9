#include "common/tls/tls_identity.h"

#include <utility>

#include "common/base/log.h"
#include "common/base/status.h"
#include "common/tls/certificate_check.h"

namespace tandem {
namespace {

constexpr size_t kMaxPemBytes = 1 << 20;

std::optional<WatchedFile> Watch(const char* flag, const std::string& path) {
  if (path.empty()) return std::nullopt;
  return WatchedFile(flag, path, kMaxPemBytes);
}

}  // namespace

TlsIdentity::TlsIdentity(const TlsFlags& flags, const TlsFiles& files)
    : cert_(Watch(flags.cert, files.cert)),
      key_(Watch(flags.key, files.key)),
      ca_(Watch(flags.ca, files.ca)) {}

absl::StatusOr<std::shared_ptr<TlsIdentity>> TlsIdentity::Open(const TlsFlags& flags,
                                                               const TlsFiles& files) {
  std::shared_ptr<TlsIdentity> identity(new TlsIdentity(flags, files));
  MutexLock lock(identity->mutex_);
  TANDEM_ASSIGN_OR_RETURN(TlsPem pem, identity->Read());
  identity->current_ = std::make_shared<const TlsPem>(std::move(pem));
  return identity;
}

absl::StatusOr<TlsPem> TlsIdentity::Read() {
  // All are read, and so known, before the first error: a file is not read again until it changes.
  absl::StatusOr<std::string> cert = cert_.has_value() ? cert_->Read() : std::string();
  absl::StatusOr<std::string> key = key_.has_value() ? key_->Read() : std::string();
  absl::StatusOr<std::string> ca = ca_.has_value() ? ca_->Read() : std::string();
  for (const auto* text : {&cert, &key, &ca}) TANDEM_RETURN_IF_ERROR(text->status());
  if (cert_.has_value()) TANDEM_RETURN_IF_ERROR(Annotate(CheckCertificate(*cert), cert_->Name()));
  if (key_.has_value()) TANDEM_RETURN_IF_ERROR(Annotate(CheckKey(*key, *cert), key_->Name()));
  if (ca_.has_value()) TANDEM_RETURN_IF_ERROR(Annotate(CheckAuthorities(*ca), ca_->Name()));
  return TlsPem{.cert = *std::move(cert), .key = *std::move(key), .ca = *std::move(ca)};
}

bool TlsIdentity::Changed() const {
  for (const auto* file : {&cert_, &key_, &ca_}) {
    if (file->has_value() && (*file)->Changed()) return true;
  }
  return false;
}

std::shared_ptr<const TlsPem> TlsIdentity::Current() {
  MutexLock lock(mutex_);
  if (!Changed()) return current_;
  absl::StatusOr<TlsPem> pem = Read();
  const std::string& name = (cert_.has_value() ? cert_ : ca_)->path();
  if (pem.ok()) {
    current_ = std::make_shared<const TlsPem>(*std::move(pem));
    TANDEM_LOG(kInfo) << "new certificates are in use: " << name;
  } else {
    TANDEM_LOG(kError) << "new certificates are not used, those before still are: "
                       << pem.status().message();
  }
  return current_;
}

}  // namespace tandem
