#include "common/transport/shm_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/transport/shm_channel.h"
#include "gtest/gtest.h"

namespace tandem::transport {
namespace {

using absl::StatusCode;

constexpr uint32_t kKind = 99;
constexpr Epoch kEpoch{5};

TEST(ShmSegmentTest, IsZeroedAndSharedWithEveryOpener) {
  auto made = ShmSegment::Create(10000, kKind, kEpoch).value();
  EXPECT_GE(made->bytes(), 10000u);
  EXPECT_EQ(made->header().epoch, 5u);
  EXPECT_EQ(made->header().creator_pid, getpid());
  EXPECT_TRUE(std::all_of(made->data() + sizeof(ShmHeader), made->data() + made->bytes(),
                          [](std::byte b) { return b == std::byte{0}; }));
  auto opened = ShmSegment::Open(made->address(), kKind, kEpoch);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ((*opened)->bytes(), made->bytes());
  made->data()[5000] = std::byte{42};
  EXPECT_EQ((*opened)->data()[5000], std::byte{42});
}

TEST(ShmSegmentTest, OutlivesItsCreatorWhereMapped) {
  auto made = ShmSegment::Create(100, kKind, kEpoch).value();
  const std::string address = made->address();
  auto opened = ShmSegment::Open(address, kKind, kEpoch).value();
  made.reset();
  opened->data()[4000] = std::byte{1};
  EXPECT_FALSE(ShmSegment::Open(address, kKind, kEpoch).ok());
}

TEST(ShmSegmentTest, CannotBeShrunk) {
  auto made = ShmSegment::Create(10000, kKind, kEpoch).value();
  const std::string address = made->address();
  const int fd = std::stoi(address.substr(address.find(':', 6) + 1));
  EXPECT_NE(ftruncate(fd, 0), 0);
}

TEST(ShmSegmentTest, RefusesAnotherKindOrEpoch) {
  auto made = ShmSegment::Create(100, kKind, kEpoch).value();
  EXPECT_EQ(ShmSegment::Open(made->address(), kKind + 1, kEpoch).status().code(),
            StatusCode::kInvalidArgument);
  const absl::Status status = ShmSegment::Open(made->address(), kKind, Epoch{6}).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("epoch 5, not 6"), absl::string_view::npos) << status;
}

TEST(ShmSegmentTest, RefusesWhatIsNoAddress) {
  for (const char* address :
       {"", "memfd", "memfd:1:2", "memfd:1:2:3:4", "memfd:x:1:4096", "memfd:-1:3:4096",
        "memfd:1:-3:4096", "memfd:1:3:0", "memfd:1:3:18446744073709551616", "file:1:3:4096",
        "memfd:1/../1:3:4096"}) {
    EXPECT_EQ(ShmSegment::Open(address, kKind, kEpoch).status().code(),
              StatusCode::kInvalidArgument)
        << address;
  }
}

TEST(ShmSegmentTest, RefusesFilesThatAreNoSegment) {
  const auto open_fd = [](int fd, size_t bytes) {
    const absl::Status status =
        ShmSegment::Open(absl::StrCat("memfd:", getpid(), ":", fd, ":", bytes), kKind, kEpoch)
            .status();
    close(fd);
    return status.code();
  };
  // A memfd without seals, one with the wrong size, one without a header, a pipe, and no file at
  // all.
  int fd = memfd_create("plain", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(fd, 4096), 0);
  EXPECT_EQ(open_fd(fd, 4096), StatusCode::kInvalidArgument);
  const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  for (size_t claimed : {size_t{8192}, size_t{4096}}) {
    fd = memfd_create("sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ASSERT_EQ(ftruncate(fd, 4096), 0);
    ASSERT_EQ(fcntl(fd, F_ADD_SEALS, seals), 0);
    EXPECT_EQ(open_fd(fd, claimed), StatusCode::kInvalidArgument);
  }
  int pipe_fds[2];
  ASSERT_EQ(pipe(pipe_fds), 0);
  EXPECT_EQ(open_fd(pipe_fds[0], 4096), StatusCode::kInvalidArgument);
  close(pipe_fds[1]);
  EXPECT_EQ(open_fd(9999, 4096), StatusCode::kUnavailable);
}

TEST(ShmSegmentTest, RefusesMoreMemoryThanThereIsBeforeItAsksForIt) {
  // Should the check be lost one day, this limit ends the call, not the host's out-of-memory
  // killer.
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit limit = before;
  limit.rlim_cur = std::min<rlim_t>(before.rlim_max, rlim_t{1} << 30);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const absl::Status status = ShmSegment::Create(size_t{1} << 50, kKind, kEpoch).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("1125899906842624 bytes"), absl::string_view::npos) << status;
  EXPECT_NE(status.message().find("available"), absl::string_view::npos) << status;
  setrlimit(RLIMIT_FSIZE, &before);
}

TEST(ShmChannelTest, AttachesOnceAndOnlyInItsEpoch) {
  auto made = ShmChannel::Create({.capacity_bytes = 4096}, kEpoch).value();
  EXPECT_EQ(ShmChannel::Attach(made.address, Epoch{6}).status().code(),
            StatusCode::kFailedPrecondition);
  auto peer = ShmChannel::Attach(made.address, kEpoch);
  ASSERT_TRUE(peer.ok()) << peer.status();
  const absl::Status again = ShmChannel::Attach(made.address, kEpoch).status();
  EXPECT_EQ(again.code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(again.message().find("has attached before"), absl::string_view::npos) << again;
}

TEST(ShmChannelTest, RefusesASegmentWhoseRingsDoNotFit) {
  auto made = ShmChannel::Create({.capacity_bytes = 4096}, kEpoch).value();
  auto segment = ShmSegment::Open(made.address, 1, kEpoch).value();
  uint64_t capacity = 0;
  std::memcpy(&capacity, segment->data() + sizeof(ShmHeader), sizeof(capacity));
  ASSERT_EQ(capacity, 4096u);
  for (uint64_t wrong : {uint64_t{0}, uint64_t{8192}, uint64_t{4095}, ~uint64_t{7}}) {
    std::memcpy(segment->data() + sizeof(ShmHeader), &wrong, sizeof(wrong));
    EXPECT_EQ(ShmChannel::Attach(made.address, kEpoch).status().code(),
              StatusCode::kInvalidArgument)
        << wrong;
  }
}

}  // namespace
}  // namespace tandem::transport
