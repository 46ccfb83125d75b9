#include <thread>

#include "gtest/gtest.h"
#include "tests/common/transport/memory_rendezvous.h"

namespace tandem::transport {
namespace {

TEST(MemoryRendezvousTest, GivesWhatWasPut) {
  MemoryRendezvous rendezvous;
  ASSERT_EQ(rendezvous.Put("a", "1"), absl::OkStatus());
  ASSERT_EQ(rendezvous.Put("b", ""), absl::OkStatus());
  EXPECT_EQ(rendezvous.Get("a", Deadline::At(TimePoint())).value(), "1");
  EXPECT_EQ(rendezvous.Get("b", Deadline::At(TimePoint())).value(), "");
}

TEST(MemoryRendezvousTest, RefusesAKeyTwice) {
  MemoryRendezvous rendezvous;
  ASSERT_EQ(rendezvous.Put("a", "1"), absl::OkStatus());
  EXPECT_EQ(rendezvous.Put("a", "2").code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(rendezvous.Get("a", Deadline::At(TimePoint())).value(), "1");
}

TEST(MemoryRendezvousTest, NamesTheMissingKey) {
  MemoryRendezvous rendezvous;
  const absl::Status status =
      rendezvous.Get("comm/3", Deadline::After(std::chrono::milliseconds(5))).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_NE(status.message().find("comm/3"), absl::string_view::npos) << status;
}

TEST(MemoryRendezvousTest, WakesThoseWhoWait) {
  MemoryRendezvous rendezvous;
  std::thread waiter([&] {
    EXPECT_EQ(rendezvous.Get("late", Deadline::After(std::chrono::seconds(60))).value(), "here");
  });
  EXPECT_EQ(rendezvous.Put("other", "x"), absl::OkStatus());
  EXPECT_EQ(rendezvous.Put("late", "here"), absl::OkStatus());
  waiter.join();
}

}  // namespace
}  // namespace tandem::transport
