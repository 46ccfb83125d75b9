#include "common/tls/certificate_check.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace tandem {
namespace {

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using PrivateKey = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

Bio Reader(const std::string& pem) {
  return {BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), &BIO_free};
}

// In place of OpenSSL's own callback, which asks at the terminal.
int NoPassphrase(char*, int, int, void*) { return -1; }

absl::StatusOr<Certificate> FirstCertificate(const std::string& pem) {
  const Bio bio = Reader(pem);
  Certificate first(PEM_read_bio_X509(bio.get(), nullptr, &NoPassphrase, nullptr), &X509_free);
  if (first == nullptr) return absl::InvalidArgumentError("holds no certificate in PEM form");
  return first;
}

std::string Text(const ASN1_TIME* time) {
  const Bio bio(BIO_new(BIO_s_mem()), &BIO_free);
  ASN1_TIME_print(bio.get(), time);
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &text);
  return {text, static_cast<size_t>(size)};
}

}  // namespace

absl::Status CheckCertificate(const std::string& cert) {
  TANDEM_ASSIGN_OR_RETURN(const Certificate first, FirstCertificate(cert));
  const ASN1_TIME* begin = X509_get0_notBefore(first.get());
  const ASN1_TIME* end = X509_get0_notAfter(first.get());
  if (X509_cmp_current_time(end) < 0) {
    return absl::InvalidArgumentError(absl::StrCat("holds a certificate that ended ", Text(end)));
  }
  if (X509_cmp_current_time(begin) > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("holds a certificate that begins ", Text(begin)));
  }
  return absl::OkStatus();
}

absl::Status CheckKey(const std::string& key, const std::string& cert) {
  const Bio bio = Reader(key);
  const PrivateKey found(PEM_read_bio_PrivateKey(bio.get(), nullptr, &NoPassphrase, nullptr),
                         &EVP_PKEY_free);
  if (found == nullptr) {
    return absl::InvalidArgumentError("holds no private key in PEM form without a passphrase");
  }
  TANDEM_ASSIGN_OR_RETURN(const Certificate first, FirstCertificate(cert));
  if (X509_check_private_key(first.get(), found.get()) == 1) return absl::OkStatus();
  return absl::InvalidArgumentError("holds the key of another certificate");
}

absl::Status CheckAuthorities(const std::string& ca) { return FirstCertificate(ca).status(); }

}  // namespace tandem
