// TlsFiles: where a program's certificate, its key, and the authorities that it trusts are.
#ifndef TANDEM_COMMON_TLS_TLS_FILES_H_
#define TANDEM_COMMON_TLS_TLS_FILES_H_

#include <string>

namespace tandem {

// Paths of PEM files; empty: none.
struct TlsFiles {
  std::string cert{};  // the program's own, and intermediates up to the authority
  std::string key{};   // of the first certificate, without a passphrase
  std::string ca{};    // authorities of the other side's certificate

  bool empty() const { return cert.empty() && key.empty() && ca.empty(); }
};

// The flags that name them, for errors.
struct TlsFlags {
  const char* cert;
  const char* key;
  const char* ca;
};

}  // namespace tandem

#endif  // TANDEM_COMMON_TLS_TLS_FILES_H_
