#include "coordinator/startup/file_stamps.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

namespace tandem::coordinator {
namespace {

class FileStampsTest : public testing::Test {
 protected:
  void SetUp() override { std::ofstream(path_) << "0123456789"; }

  const std::string path_ = testing::TempDir() + "/model.gguf";
};

TEST_F(FileStampsTest, NamesWhatChanged) {
  const FileStamps stamps = FileStamps::Of({path_});
  EXPECT_EQ(stamps.Changes(), "");
  ASSERT_EQ(truncate(path_.c_str(), 4), 0);
  EXPECT_EQ(stamps.Changes(),
            "model file " + path_ + " was changed while it was served: it had 10 bytes, now 4");
}

TEST_F(FileStampsTest, ANewTimeIsAChange) {
  const FileStamps stamps = FileStamps::Of({path_});
  const timespec times[2] = {{.tv_sec = 1, .tv_nsec = 0}, {.tv_sec = 1, .tv_nsec = 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, path_.c_str(), times, 0), 0);
  EXPECT_EQ(stamps.Changes(), "model file " + path_ + " was written to while it was served");
}

TEST_F(FileStampsTest, AFileThatWasReplacedOrRemovedIsNone) {
  const FileStamps stamps = FileStamps::Of({path_});
  std::ofstream(path_ + ".new") << "another";
  ASSERT_EQ(std::rename((path_ + ".new").c_str(), path_.c_str()), 0);
  EXPECT_EQ(stamps.Changes(), "");
  ASSERT_EQ(std::remove(path_.c_str()), 0);
  EXPECT_EQ(stamps.Changes(), "");
}

}  // namespace
}  // namespace tandem::coordinator
