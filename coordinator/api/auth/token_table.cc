#include "coordinator/api/auth/token_table.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "common/base/check.h"

namespace tandem::coordinator {

TokenHash HashToken(std::string_view token) {
  TokenHash hash;
  TANDEM_CHECK(
      EVP_Digest(token.data(), token.size(), hash.data(), nullptr, EVP_sha256(), nullptr) == 1);
  return hash;
}

const TokenEntry* TokenTable::Find(std::string_view token) const {
  const TokenHash hash = HashToken(token);
  const TokenEntry* found = nullptr;
  for (const TokenEntry& entry : entries_) {
    if (CRYPTO_memcmp(entry.hash.data(), hash.data(), hash.size()) == 0) found = &entry;
  }
  return found;
}

}  // namespace tandem::coordinator
