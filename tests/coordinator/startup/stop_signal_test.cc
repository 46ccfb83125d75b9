#include "coordinator/startup/stop_signal.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace tandem::coordinator {
namespace {

TEST(StopSignalTest, ChildrenCanBeWaitedForWhateverWasInherited) {
  signal(SIGCHLD, SIG_IGN);
  StopSignal stop;
  struct sigaction action {};
  ASSERT_EQ(sigaction(SIGCHLD, nullptr, &action), 0);
  EXPECT_EQ(action.sa_handler, SIG_DFL);
}

TEST(StopSignalTest, ASignalIsNamed) {
  StopSignal stop;
  EXPECT_FALSE(stop.raised());
  raise(SIGTERM);
  EXPECT_TRUE(stop.raised());
  EXPECT_EQ(stop.name(), "SIGTERM");
}

}  // namespace
}  // namespace tandem::coordinator
