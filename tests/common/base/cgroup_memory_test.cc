#include "common/base/cgroup_memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

namespace tandem {
namespace {

constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();
constexpr char kV1Unlimited[] = "9223372036854771712";

// A root with files as the kernel has them.
class CgroupMemoryTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(root_); }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }
  void IsIn(const std::string& groups) const { Write("/proc/self/cgroup", groups); }
  void AddV2(const std::string& group, const std::string& max, const std::string& current,
             const std::string& stat = "anon 1\ninactive_file 0") const {
    const std::string folder = "/sys/fs/cgroup" + group;
    Write(folder + "/memory.max", max);
    Write(folder + "/memory.current", current);
    Write(folder + "/memory.stat", stat);
  }
  void AddV1(const std::string& group, const std::string& limit, const std::string& usage) const {
    const std::string folder = "/sys/fs/cgroup/memory" + group;
    Write(folder + "/memory.limit_in_bytes", limit);
    Write(folder + "/memory.usage_in_bytes", usage);
    Write(folder + "/memory.stat", "inactive_file 7\ntotal_inactive_file 100");
  }
  uint64_t Left() const { return CgroupMemoryLeft(root_); }

  const std::string root_ = testing::TempDir() + "/cgroup_memory_test";
};

TEST_F(CgroupMemoryTest, WithoutAnythingThereIsNoLimit) {
  EXPECT_EQ(Left(), kUnlimited);
  IsIn("0::/system.slice/tandem.service");
  EXPECT_EQ(Left(), kUnlimited);
  AddV2("/system.slice/tandem.service", "max", "500");
  EXPECT_EQ(Left(), kUnlimited);
}

TEST_F(CgroupMemoryTest, AContainersGroupIsTheRoot) {
  IsIn("0::/");
  AddV2("", "1000", "600", "anon 1\ninactive_file 150\nactive_file 5");
  EXPECT_EQ(Left(), 550u) << "page cache is given back";
  AddV2("", "1000", "600", "inactive_file 700");
  EXPECT_EQ(Left(), 1000u);
  AddV2("", "1000", "1200");
  EXPECT_EQ(Left(), 0u);
}

TEST_F(CgroupMemoryTest, AServicesGroupIsFarDown) {
  IsIn("0::/system.slice/tandem.service");
  AddV2("/system.slice/tandem.service", "1000", "100");
  EXPECT_EQ(Left(), 900u);
}

TEST_F(CgroupMemoryTest, TheLeastOfAllAroundCounts) {
  IsIn("0::/kubepods/pod1/server");
  AddV2("/kubepods/pod1/server", "max", "100");
  AddV2("/kubepods/pod1", "5000", "4700");  // with other containers
  AddV2("/kubepods", "9000", "8000");
  AddV2("/other", "1", "1");
  EXPECT_EQ(Left(), 300u);
}

TEST_F(CgroupMemoryTest, Version1) {
  IsIn("5:cpu,cpuacct:/a\n4:memory:/system.slice/tandem.service\n0::/unified");
  AddV1("/system.slice/tandem.service", "1000", "600");
  AddV1("/system.slice", "9000", "8600");
  AddV1("", kV1Unlimited, "100000");
  AddV1("/a", "1", "1");
  EXPECT_EQ(Left(), 500u);
  IsIn("7:hugetlb,memory:/system.slice");
  EXPECT_EQ(Left(), 500u);
}

TEST_F(CgroupMemoryTest, AContainerThatSeesOnlyItsOwnGroup) {
  IsIn("4:memory:/docker/0123");
  AddV1("", "1000", "600");
  EXPECT_EQ(Left(), 500u);
  IsIn("0::/../../elsewhere");
  AddV2("", "1000", "200");
  EXPECT_EQ(Left(), 800u);
}

TEST_F(CgroupMemoryTest, WhatIsNoListLimitsNothing) {
  IsIn("nonsense\n\n::\n4:memory");
  AddV2("", "1000", "600");
  EXPECT_EQ(Left(), kUnlimited);
}

}  // namespace
}  // namespace tandem
