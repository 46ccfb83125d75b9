#include "coordinator/cluster/rendezvous_registry.h"

#include <gtest/gtest.h>

#include <optional>

namespace tandem::coordinator {
namespace {

using Answer = std::optional<absl::StatusOr<std::string>>;

RendezvousRegistry::Answer Into(Answer& answer) {
  return [&answer](absl::StatusOr<std::string> value) { answer = std::move(value); };
}

TEST(RendezvousRegistryTest, AGetBeforeThePutIsAnsweredByIt) {
  RendezvousRegistry registry;
  registry.SetEpoch(Epoch{1});
  Answer early, late;
  registry.Get(Epoch{1}, "key", Into(early));
  EXPECT_FALSE(early.has_value());
  EXPECT_TRUE(registry.Put(Epoch{1}, "key", "value").ok());
  registry.Get(Epoch{1}, "key", Into(late));
  ASSERT_TRUE(early.has_value() && late.has_value());
  EXPECT_EQ(**early, "value");
  EXPECT_EQ(**late, "value");
  EXPECT_EQ(registry.Put(Epoch{1}, "key", "again").code(), absl::StatusCode::kAlreadyExists);
}

TEST(RendezvousRegistryTest, KeysEndWithTheirEpoch) {
  RendezvousRegistry registry;
  registry.SetEpoch(Epoch{1});
  EXPECT_TRUE(registry.Put(Epoch{1}, "old", "value").ok());
  Answer pending, wrong, fresh;
  registry.Get(Epoch{1}, "never", Into(pending));
  registry.SetEpoch(Epoch{2});
  ASSERT_TRUE(pending.has_value());
  EXPECT_EQ(pending->status().code(), absl::StatusCode::kAborted);
  registry.Get(Epoch{1}, "old", Into(wrong));
  ASSERT_TRUE(wrong.has_value());
  EXPECT_EQ(wrong->status().code(), absl::StatusCode::kFailedPrecondition);
  registry.Get(Epoch{2}, "old", Into(fresh));
  EXPECT_FALSE(fresh.has_value());
  EXPECT_EQ(registry.Put(Epoch{1}, "x", "y").code(), absl::StatusCode::kFailedPrecondition);
}

TEST(RendezvousRegistryTest, IsBounded) {
  RendezvousRegistry registry;
  registry.SetEpoch(Epoch{1});
  EXPECT_EQ(registry.Put(Epoch{1}, "big", std::string(RendezvousRegistry::kMaxValueBytes + 1, 'x'))
                .code(),
            absl::StatusCode::kResourceExhausted);
  for (size_t i = 0; i < RendezvousRegistry::kMaxKeys; ++i) {
    ASSERT_TRUE(registry.Put(Epoch{1}, std::to_string(i), "").ok());
  }
  EXPECT_EQ(registry.Put(Epoch{1}, "one more", "").code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace tandem::coordinator
