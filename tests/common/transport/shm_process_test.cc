// Shared-memory channels between real processes, and what happens when one of them is killed or
// stopped.
#include <dirent.h>

#include <chrono>
#include <random>
#include <set>
#include <string>

#include "common/transport/shm_channel.h"
#include "gtest/gtest.h"
#include "tests/common/transport/fork_child.h"

namespace tandem::transport {
namespace {

using absl::StatusCode;

constexpr Epoch kEpoch{7};

Deadline Long() { return Deadline::After(std::chrono::seconds(60)); }
Deadline Short() { return Deadline::After(std::chrono::milliseconds(100)); }

ShmChannel::Created Create(size_t capacity = 64 << 10) {
  return ShmChannel::Create({.capacity_bytes = capacity}, kEpoch).value();
}

// Sends back every frame, with its first byte one higher; 0 once the channel closes.
int Echo(const std::string& address) {
  auto channel = ShmChannel::Attach(address, kEpoch);
  if (!channel.ok()) return 2;
  while (true) {
    absl::StatusOr<Frame> frame = (*channel)->Receive(Long());
    if (absl::IsUnavailable(frame.status())) return 0;
    if (!frame.ok()) return 3;
    if (!frame->empty()) ++frame->front();
    if (!(*channel)->Send(*frame, Long()).ok()) return 4;
  }
}

void ExpectEcho(Channel& channel, uint8_t value) {
  ASSERT_EQ(channel.Send(Frame(100, value), Long()), absl::OkStatus());
  const auto frame = channel.Receive(Long());
  ASSERT_TRUE(frame.ok()) << frame.status();
  EXPECT_EQ(frame->front(), value + 1);
}

std::set<std::string> DevShm() {
  std::set<std::string> names;
  if (DIR* dir = opendir("/dev/shm")) {
    while (const dirent* entry = readdir(dir)) {
      if (std::string(entry->d_name).find("tandem") != std::string::npos) {
        names.insert(entry->d_name);
      }
    }
    closedir(dir);
  }
  return names;
}

// Receives until the deadline; fails when that takes far longer.
void ExpectDeadlineInBoundedTime(Channel& channel) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(channel.Receive(Short()).status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

void FillUntilDeadline(Channel& channel) {
  absl::Status status;
  while (status.ok()) status = channel.Send(Frame(10000), Short());
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status;
}

TEST(ShmProcessTest, FramesGoThereAndBack) {
  auto made = Create();
  ForkChild child([&] { return Echo(made.address); });
  std::minstd_rand random(1);
  for (int i = 0; i < 3000; ++i) {
    Frame frame(1 + random() % 5000, static_cast<uint8_t>(i));
    ASSERT_EQ(made.channel->Send(frame, Long()), absl::OkStatus());
    auto back = made.channel->Receive(Long());
    ASSERT_TRUE(back.ok()) << back.status();
    ++frame.front();
    ASSERT_EQ(*back, frame);
  }
  made.channel->Close("done");
  EXPECT_EQ(child.Wait(), 0);
}

TEST(ShmProcessTest, CloseByThePeerWakesUsWithItsReason) {
  auto made = Create();
  ForkChild child([&] {
    auto channel = ShmChannel::Attach(made.address, kEpoch);
    if (!channel.ok()) return 2;
    (*channel)->Close("the model is broken");
    return 0;
  });
  const absl::Status status = made.channel->Receive(Long()).status();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("the model is broken"), absl::string_view::npos) << status;
  EXPECT_EQ(child.Wait(), 0);
}

TEST(ShmProcessTest, AKilledPeerIsNoticedAtTheDeadline) {
  const auto before = DevShm();
  {
    auto made = Create();
    ForkChild child([&] { return Echo(made.address); });
    ExpectEcho(*made.channel, 1);
    child.Signal(SIGKILL);
    EXPECT_EQ(child.Wait(), -1);
    ExpectDeadlineInBoundedTime(*made.channel);
    FillUntilDeadline(*made.channel);
    made.channel->Close("rank 1 was killed");
    EXPECT_EQ(made.channel->Receive(Long()).status().code(), StatusCode::kUnavailable);
  }
  EXPECT_EQ(DevShm(), before);
}

TEST(ShmProcessTest, AStoppedPeerIsDetectedAndContinuesAfterwards) {
  auto made = Create();
  ForkChild child([&] { return Echo(made.address); });
  ExpectEcho(*made.channel, 1);
  child.Stop();
  ASSERT_EQ(made.channel->Send(Frame(100, 5), Long()), absl::OkStatus());
  ExpectDeadlineInBoundedTime(*made.channel);
  child.Signal(SIGCONT);
  EXPECT_EQ(made.channel->Receive(Long()).value(), ([] {
              Frame frame(100, 5);
              ++frame.front();
              return frame;
            })());
  made.channel->Close("done");
  EXPECT_EQ(child.Wait(), 0);
}

TEST(ShmProcessTest, AKilledCreatorLeavesNothingBehind) {
  const auto before = DevShm();
  int pipe_fds[2];
  ASSERT_EQ(pipe(pipe_fds), 0);
  ForkChild creator([&] {
    auto made = Create();
    const std::string address = made.address;
    if (write(pipe_fds[1], address.data(), address.size()) < 0) return 2;
    while (true) pause();
    return 0;
  });
  char text[128];
  const ssize_t bytes = read(pipe_fds[0], text, sizeof(text));
  ASSERT_GT(bytes, 0);
  const std::string address(text, bytes);
  auto channel = ShmChannel::Attach(address, kEpoch);
  ASSERT_TRUE(channel.ok()) << channel.status();
  creator.Signal(SIGKILL);
  EXPECT_EQ(creator.Wait(), -1);
  ExpectDeadlineInBoundedTime(**channel);
  EXPECT_EQ(ShmChannel::Attach(address, kEpoch).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(DevShm(), before);
  close(pipe_fds[0]);
  close(pipe_fds[1]);
}

}  // namespace
}  // namespace tandem::transport
