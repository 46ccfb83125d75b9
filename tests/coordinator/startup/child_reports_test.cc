#include "coordinator/startup/child_reports.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>

#include "common/base/clock.h"

namespace tandem::coordinator {
namespace {

using std::chrono::seconds;

void Report(const ChildReports& reports, const std::string& bytes) {
  const int fd = open(reports.path().c_str(), O_WRONLY | O_NONBLOCK);
  ASSERT_GE(fd, 0) << reports.path();
  EXPECT_EQ(write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  close(fd);
}

bool Came(ChildReports& reports, char report) {
  return reports.Wait(report, Deadline::After(seconds(0)), [] { return false; });
}

TEST(ChildReports, EachThingIsSaidOnce) {
  const auto reports = ChildReports::Create().value();
  EXPECT_FALSE(Came(*reports, 'a'));
  Report(*reports, "ab");
  EXPECT_TRUE(Came(*reports, 'b'));
  EXPECT_TRUE(Came(*reports, 'a'));
  EXPECT_FALSE(Came(*reports, 'c'));
  Report(*reports, std::string(1000, 'a') + "c");  // of processes that follow each other
  EXPECT_TRUE(Came(*reports, 'c'));
  EXPECT_TRUE(Came(*reports, 'a'));
}

TEST(ChildReports, SignsOfLifeAreCounted) {
  const auto reports = ChildReports::Create().value();
  EXPECT_EQ(reports->Count('h'), 0u);
  Report(*reports, "hah");
  EXPECT_EQ(reports->Count('h'), 2u);
  EXPECT_TRUE(Came(*reports, 'a')) << "what another call has read";
  Report(*reports, "h");
  EXPECT_EQ(reports->Count('h'), 3u);
}

TEST(ChildReports, AChildIsWaitedFor) {
  const auto reports = ChildReports::Create().value();
  const std::string path = reports->path();
  const pid_t child = fork();
  if (child == 0) {
    const int fd = open(path.c_str(), O_WRONLY | O_NONBLOCK);
    _exit(write(fd, "a", 1) == 1 ? 0 : 1);
  }
  EXPECT_TRUE(reports->Wait('a', Deadline::After(seconds(60)), [] { return false; }));
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(ChildReports, NobodyWaitsLongerThanNeeded) {
  const auto reports = ChildReports::Create().value();
  EXPECT_FALSE(reports->Wait('a', Deadline::After(seconds(600)), [] { return true; }));
}

}  // namespace
}  // namespace tandem::coordinator
