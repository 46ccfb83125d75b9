#include "coordinator/process/child_process.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tandem::coordinator {
namespace {

constexpr std::chrono::seconds kPatience(60);

std::unique_ptr<ChildProcess> Start(const std::vector<std::string>& argv) {
  auto process = ChildProcess::Spawn(argv);
  EXPECT_TRUE(process.ok()) << process.status();
  return std::move(process).value();
}

TEST(ChildProcessTest, SaysHowItEnded) {
  const auto failing = Start({"/bin/false"});
  ASSERT_TRUE(failing->WaitExit(kPatience));
  EXPECT_EQ(failing->Poll().message(), "exited with code 1");
  EXPECT_FALSE(failing->Succeeded());

  const auto succeeding = Start({"/bin/true"});
  ASSERT_TRUE(succeeding->WaitExit(kPatience));
  EXPECT_TRUE(succeeding->Succeeded());
}

TEST(ChildProcessTest, TellsWhoKilledIt) {
  const auto by_us = Start({"/bin/sleep", "1000"});
  EXPECT_TRUE(by_us->Poll().ok());
  by_us->Kill(SIGKILL);
  ASSERT_TRUE(by_us->WaitExit(kPatience));
  EXPECT_EQ(by_us->Poll().message(), "killed by signal 9 (Killed)");
  EXPECT_FALSE(by_us->EndedFromOutside());

  const auto by_another = Start({"/bin/sleep", "1000"});
  kill(by_another->pid(), SIGKILL);
  ASSERT_TRUE(by_another->WaitExit(kPatience));
  EXPECT_TRUE(by_another->EndedFromOutside());
}

// Where SIGCHLD is ignored the kernel reaps children itself, and their pids may be others' soon.
TEST(ChildProcessTest, HasEndedEvenIfItWasReapedElsewhere) {
  signal(SIGCHLD, SIG_IGN);
  const auto process = Start({"/bin/false"});
  EXPECT_TRUE(process->WaitExit(kPatience));
  EXPECT_EQ(process->Poll().message(), "ended; how was not kept, as SIGCHLD is ignored");
  signal(SIGCHLD, SIG_DFL);
}

}  // namespace
}  // namespace tandem::coordinator
