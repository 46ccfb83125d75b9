// Digest: the hash of a file's content by which a hub names it.
#ifndef TANDEM_COMMON_HUB_DIGEST_H_
#define TANDEM_COMMON_HUB_DIGEST_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace tandem::hub {

enum class DigestKind {
  kSha256,   // of the content: large files (Git LFS)
  kGitBlob,  // SHA-1 of a Git blob, "blob SIZE\0" and the content: small files
};

// What a file must contain: its digest in lower-case hex and its size.
struct Content {
  DigestKind kind = DigestKind::kSha256;
  std::string hex{};
  uint64_t size_bytes = 0;

  bool operator==(const Content&) const = default;
};

// One thread.
class Digest {
 public:
  // Of a content with the kind and the size of `content`.
  explicit Digest(const Content& content);
  ~Digest();
  Digest(Digest&&) noexcept;
  Digest& operator=(Digest&&) noexcept;

  void Update(std::string_view bytes);
  // REQUIRES: called once.
  std::string Hex();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

}  // namespace tandem::hub

#endif  // TANDEM_COMMON_HUB_DIGEST_H_
