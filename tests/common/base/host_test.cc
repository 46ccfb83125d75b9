#include "common/base/host.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace tandem {
namespace {

TEST(HostIdTest, NamesTheBootAndTheProcessNamespace) {
  const std::string id = HostId();
  const size_t slash = id.find('/');
  ASSERT_NE(slash, std::string::npos) << id;
  EXPECT_EQ(slash, 36u) << id;  // a UUID
  EXPECT_EQ(id.substr(slash + 1, 5), "pid:[") << id;
}

TEST(HostIdTest, IsTheSameInAnotherProcessOfThisHost) {
  const std::string id = HostId();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(HostId() == id ? 0 : 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(AvailableMemoryTest, IsKnownAndNoMoreThanThereIs) {
  const uint64_t available = AvailableMemoryBytes();
  EXPECT_GT(available, 0u);
  EXPECT_LE(available, static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                           static_cast<uint64_t>(sysconf(_SC_PAGESIZE)));
}

}  // namespace
}  // namespace tandem
