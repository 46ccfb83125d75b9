#include "coordinator/startup/service_manager.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>

#include "common/base/clock.h"

namespace tandem::coordinator {
namespace {

class ServiceManagerTest : public testing::Test {
 protected:
  void TearDown() override {
    if (fd_ >= 0) close(fd_);
    unsetenv("NOTIFY_SOCKET");
  }

  // Listens as a service manager on `path`, '@' for the abstract namespace.
  void Listen(const std::string& path) {
    ASSERT_EQ(setenv("NOTIFY_SOCKET", path.c_str(), 1), 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    ASSERT_LE(path.size(), sizeof(address.sun_path));
    std::memcpy(address.sun_path, path.data(), path.size());
    if (path[0] == '@') address.sun_path[0] = '\0';
    fd_ = socket(AF_UNIX, SOCK_DGRAM, 0);
    ASSERT_GE(fd_, 0);
    ASSERT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address),
                   static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size())),
              0)
        << strerror(errno);
  }

  // What has arrived.
  std::string Received() {
    char buffer[64];
    const ssize_t count = recv(fd_, buffer, sizeof(buffer), MSG_DONTWAIT);
    return count < 0 ? strerror(errno) : std::string(buffer, static_cast<size_t>(count));
  }

  int fd_ = -1;
};

TEST_F(ServiceManagerTest, WithoutOneNothingIsSaid) {
  EXPECT_TRUE(NotifyServiceManager("READY=1").ok());
}

TEST_F(ServiceManagerTest, TellsASocketOfAFile) {
  // A short path: the test's own folder may be longer than a socket's address.
  char folder[] = "/tmp/notifyXXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string path = std::string(folder) + "/s";
  Listen(path);
  EXPECT_TRUE(NotifyServiceManager("READY=1").ok());
  EXPECT_TRUE(NotifyServiceManager("STOPPING=1").ok());
  EXPECT_EQ(Received(), "READY=1");
  EXPECT_EQ(Received(), "STOPPING=1");
  unlink(path.c_str());
  const absl::Status status = NotifyServiceManager("READY=1");
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_EQ(status.message(), "NOTIFY_SOCKET " + path + ": No such file or directory");
  rmdir(folder);
}

TEST_F(ServiceManagerTest, TellsASocketOfTheAbstractNamespace) {
  Listen("@tandem-" + std::to_string(getpid()));
  EXPECT_TRUE(NotifyServiceManager("READY=1").ok());
  EXPECT_EQ(Received(), "READY=1");
}

TEST_F(ServiceManagerTest, AsksForMoreTimeOnceAMinute) {
  Listen("@tandem-" + std::to_string(getpid()));
  SimulatedClock clock;
  StartTime start(clock);
  EXPECT_TRUE(start.Progressed().ok());
  EXPECT_EQ(Received(), "EXTEND_TIMEOUT_USEC=1200000000");
  clock.Advance(std::chrono::seconds(59));
  EXPECT_TRUE(start.Progressed().ok());
  EXPECT_EQ(Received(), strerror(EAGAIN));
  clock.Advance(std::chrono::seconds(1));
  EXPECT_TRUE(start.Progressed().ok());
  EXPECT_EQ(Received(), "EXTEND_TIMEOUT_USEC=1200000000");
}

TEST_F(ServiceManagerTest, RefusesWhatIsNoSocket) {
  for (const std::string& path :
       {std::string(), std::string("relative"), "/" + std::string(108, 'x')}) {
    ASSERT_EQ(setenv("NOTIFY_SOCKET", path.c_str(), 1), 0);
    EXPECT_TRUE(absl::IsInvalidArgument(NotifyServiceManager("READY=1"))) << path;
  }
}

}  // namespace
}  // namespace tandem::coordinator
