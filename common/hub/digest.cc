#include "common/hub/digest.h"

#include <openssl/evp.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace tandem::hub {

struct Digest::Context {
  EVP_MD_CTX* md = EVP_MD_CTX_new();
  ~Context() { EVP_MD_CTX_free(md); }
};

Digest::Digest(const Content& content) : context_(std::make_unique<Context>()) {
  const bool git = content.kind == DigestKind::kGitBlob;
  TANDEM_CHECK(EVP_DigestInit_ex(context_->md, git ? EVP_sha1() : EVP_sha256(), nullptr) == 1);
  if (git) Update(absl::StrCat("blob ", content.size_bytes, std::string(1, '\0')));
}

Digest::~Digest() = default;
Digest::Digest(Digest&&) noexcept = default;
Digest& Digest::operator=(Digest&&) noexcept = default;

void Digest::Update(std::string_view bytes) {
  TANDEM_CHECK(EVP_DigestUpdate(context_->md, bytes.data(), bytes.size()) == 1);
}

std::string Digest::Hex() {
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  TANDEM_CHECK(EVP_DigestFinal_ex(context_->md, bytes, &size) == 1);
  return absl::BytesToHexString({reinterpret_cast<const char*>(bytes), size});
}

}  // namespace tandem::hub
