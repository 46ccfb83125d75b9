#include "common/hub/digest.h"

#include <gtest/gtest.h>

namespace tandem::hub {
namespace {

// The published test vector "abc" of FIPS 180-2, in two pieces.
TEST(DigestTest, Sha256) {
  Digest digest({.kind = DigestKind::kSha256, .size_bytes = 3});
  digest.Update("a");
  digest.Update("bc");
  EXPECT_EQ(digest.Hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

// `printf 'hello\n' | git hash-object --stdin`.
TEST(DigestTest, GitBlob) {
  Digest digest({.kind = DigestKind::kGitBlob, .size_bytes = 6});
  digest.Update("hello\n");
  EXPECT_EQ(digest.Hex(), "ce013625030ba8dba906f756967f9e9ca394464a");
}

}  // namespace
}  // namespace tandem::hub
