// What can be wrong with certificates before anyone connects.
#ifndef TANDEM_COMMON_TLS_CERTIFICATE_CHECK_H_
#define TANDEM_COMMON_TLS_CERTIFICATE_CHECK_H_

#include <string>

#include "absl/status/status.h"

namespace tandem {

// All are PEM texts; INVALID_ARGUMENT says what is wrong.

// A chain whose first certificate is valid now.
absl::Status CheckCertificate(const std::string& cert);
// The key, without a passphrase, of the chain's first certificate.
absl::Status CheckKey(const std::string& key, const std::string& cert);
// At least one certificate.
absl::Status CheckAuthorities(const std::string& ca);

}  // namespace tandem

#endif  // TANDEM_COMMON_TLS_CERTIFICATE_CHECK_H_
