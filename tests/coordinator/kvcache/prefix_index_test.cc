#include "coordinator/kvcache/prefix_index.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <set>
#include <string>
#include <vector>

namespace tandem::coordinator {
namespace {

using Tokens = std::vector<TokenId>;

constexpr uint64_t kKey = 17;

PrefixNodeId Find(const PrefixIndex& index, PrefixNodeId parent, const Tokens& tokens) {
  return index.Find(index.Root(), parent, tokens, index.HashOf(index.Root(), parent, tokens));
}

uint64_t SameForAll(std::span<const TokenId>, uint64_t) { return 42; }
// Ignores the parent, so that equal blocks after different prefixes collide.
uint64_t WithoutParent(std::span<const TokenId> tokens, uint64_t) {
  return PrefixIndex::XxHash(tokens, 0);
}

TEST(PrefixIndexTest, FindsAChainOfBlocks) {
  PrefixIndex index(2, 1, kKey);
  EXPECT_EQ(Find(index, kNoPrefix, Tokens{1, 2}), kNoPrefix);
  const PrefixNodeId first = index.FindOrAdd(index.Root(), kNoPrefix, Tokens{1, 2});
  index.Attach(first, 0, 10);
  const PrefixNodeId second = index.FindOrAdd(index.Root(), first, Tokens{3, 4});
  index.Attach(second, 0, 11);
  EXPECT_EQ(Find(index, kNoPrefix, Tokens{1, 2}), first);
  EXPECT_EQ(Find(index, first, Tokens{3, 4}), second);
  EXPECT_EQ(index.block(second, 0), 11);
  // The same tokens elsewhere are another node.
  EXPECT_EQ(Find(index, kNoPrefix, Tokens{3, 4}), kNoPrefix);
  EXPECT_EQ(Find(index, second, Tokens{3, 4}), kNoPrefix);
  EXPECT_EQ(index.FindOrAdd(index.Root(), kNoPrefix, Tokens{1, 2}), first);
  EXPECT_TRUE(index.CheckIntegrity().ok());
}

TEST(PrefixIndexTest, HashesAreKeyed) {
  PrefixIndex index(2, 1, kKey), other(2, 1, kKey + 1);
  const Tokens tokens = {1, 2};
  EXPECT_EQ(index.HashOf(index.Root(), kNoPrefix, tokens),
            index.HashOf(PrefixIndex(2, 1, kKey).Root(), kNoPrefix, tokens));
  EXPECT_NE(index.HashOf(index.Root(), kNoPrefix, tokens),
            other.HashOf(other.Root(), kNoPrefix, tokens));
  // So are those of blocks further on.
  const PrefixNodeId first = index.FindOrAdd(index.Root(), kNoPrefix, tokens);
  index.Attach(first, 0, 10);
  const PrefixNodeId second = other.FindOrAdd(other.Root(), kNoPrefix, tokens);
  other.Attach(second, 0, 10);
  EXPECT_NE(index.HashOf(index.Root(), first, tokens), other.HashOf(other.Root(), second, tokens));
}

TEST(PrefixIndexTest, PromptsWithDifferentSaltsShareNothing) {
  PrefixIndex index(2, 1, kKey);
  const Tokens tokens = {1, 2};
  EXPECT_EQ(index.Root("a"), index.Root("a"));
  const PrefixNodeId none = index.FindOrAdd(index.Root(), kNoPrefix, tokens);
  const PrefixNodeId a = index.FindOrAdd(index.Root("a"), kNoPrefix, tokens);
  const PrefixNodeId b = index.FindOrAdd(index.Root("b"), kNoPrefix, tokens);
  EXPECT_EQ(std::set({none, a, b, kNoPrefix}).size(), 4u);
  index.Attach(none, 0, 10);
  index.Attach(a, 0, 11);
  index.Attach(b, 0, 12);
  const uint64_t hash = index.HashOf(index.Root("a"), kNoPrefix, tokens);
  EXPECT_EQ(index.Find(index.Root("a"), kNoPrefix, tokens, hash), a);
  // Not even if the hash is guessed.
  EXPECT_EQ(index.Find(index.Root("b"), kNoPrefix, tokens, hash), kNoPrefix);
  EXPECT_TRUE(index.CheckIntegrity().ok());
}

// With XXH64 these two have one hash whatever the key is.
TEST(PrefixIndexTest, SaltsMadeToCollideShareNothing) {
  const std::string a = "KWAB`(Dyuser\u04bb\u00c7", b = "+dB\u06bb"
                                                        "t\u0585user#p6q";
  for (const uint64_t key : {uint64_t{0}, uint64_t{1}, kKey}) {
    PrefixIndex index(2, 1, key);
    ASSERT_EQ(XXH64(a.data(), a.size(), key), XXH64(b.data(), b.size(), key));
    EXPECT_NE(index.Root(a), index.Root(b));
    EXPECT_NE(index.Root(a).hash, index.Root(b).hash);
  }
}

TEST(PrefixIndexTest, AfterAResetNothingIsFoundAndTheRestIsInOrder) {
  PrefixIndex index(2, 1, kKey);
  const PrefixNodeId first = index.FindOrAdd(index.Root(), kNoPrefix, Tokens{1, 2});
  index.Attach(first, 0, 10);
  const PrefixRoot before = index.Root();
  index.Reset();
  EXPECT_NE(index.Root(), before);
  EXPECT_EQ(Find(index, kNoPrefix, Tokens{1, 2}), kNoPrefix);
  const PrefixNodeId after = index.FindOrAdd(index.Root(), kNoPrefix, Tokens{1, 2});
  EXPECT_NE(after, first);
  index.Attach(after, 0, 12);
  // One that was begun before is continued, for no one else.
  const PrefixNodeId second = index.FindOrAdd(before, first, Tokens{3, 4});
  index.Attach(second, 0, 11);
  EXPECT_TRUE(index.CheckIntegrity().ok());
}

TEST(PrefixIndexTest, AHashCollisionOfTokensIsNoHit) {
  PrefixIndex index(2, 1, kKey, &SameForAll);
  const PrefixNodeId first = index.FindOrAdd(index.Root(), kNoPrefix, Tokens{1, 2});
  index.Attach(first, 0, 10);
  EXPECT_EQ(Find(index, kNoPrefix, Tokens{1, 3}), kNoPrefix);
  EXPECT_EQ(index.FindOrAdd(index.Root(), kNoPrefix, Tokens{1, 3}), kNoPrefix);
  EXPECT_EQ(Find(index, kNoPrefix, Tokens{1, 2}), first);
  EXPECT_TRUE(index.CheckIntegrity().ok());
}

TEST(PrefixIndexTest, EqualTokensAndHashBehindAnotherParentAreNoHit) {
  PrefixIndex index(2, 1, kKey, &WithoutParent);
  const PrefixNodeId a = index.FindOrAdd(index.Root(), kNoPrefix, Tokens{1, 1});
  index.Attach(a, 0, 0);
  const PrefixNodeId b = index.FindOrAdd(index.Root(), kNoPrefix, Tokens{2, 2});
  index.Attach(b, 0, 1);
  const PrefixNodeId child = index.FindOrAdd(index.Root(), a, Tokens{9, 9});
  index.Attach(child, 0, 2);
  EXPECT_EQ(Find(index, a, Tokens{9, 9}), child);
  EXPECT_EQ(Find(index, b, Tokens{9, 9}), kNoPrefix);
  EXPECT_EQ(index.FindOrAdd(index.Root(), b, Tokens{9, 9}), kNoPrefix);
}

TEST(PrefixIndexTest, ANodeExistsWhileABlockAChildOrAPinHoldsIt) {
  PrefixIndex index(1, 2, kKey);
  const PrefixNodeId parent = index.FindOrAdd(index.Root(), kNoPrefix, Tokens{1});
  index.Attach(parent, 0, 0);
  index.Attach(parent, 1, 0);
  const PrefixNodeId child = index.FindOrAdd(index.Root(), parent, Tokens{2});
  PrefixPin pin(index, child);
  index.Detach(parent, 0);
  index.Detach(parent, 1);
  // No block any more, but its child still names it.
  EXPECT_EQ(Find(index, kNoPrefix, Tokens{1}), parent);
  EXPECT_EQ(index.block(parent, 0), kNoBlock);
  EXPECT_EQ(index.num_nodes(), 2u);
  pin = PrefixPin();
  EXPECT_EQ(index.num_nodes(), 0u);
  EXPECT_EQ(Find(index, kNoPrefix, Tokens{1}), kNoPrefix);
  EXPECT_TRUE(index.CheckIntegrity().ok());
}

TEST(PrefixIndexTest, APlaceInTheTableIsReusedWithoutItsOldContents) {
  PrefixIndex index(1, 1, kKey);
  const PrefixNodeId old_node = index.FindOrAdd(index.Root(), kNoPrefix, Tokens{1});
  index.Attach(old_node, 0, 5);
  index.Detach(old_node, 0);
  const PrefixNodeId node = index.FindOrAdd(index.Root(), kNoPrefix, Tokens{2});
  EXPECT_EQ(node, old_node);
  EXPECT_EQ(index.block(node, 0), kNoBlock);
  EXPECT_EQ(Find(index, kNoPrefix, Tokens{1}), kNoPrefix);
  EXPECT_EQ(Find(index, kNoPrefix, Tokens{2}), node);
  index.Attach(node, 0, 6);
  EXPECT_TRUE(index.CheckIntegrity().ok());
}

}  // namespace
}  // namespace tandem::coordinator
