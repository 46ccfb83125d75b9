#include "common/base/step_guard.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace tandem {
namespace {

TEST(StepGuardTest, APhaseWithoutBlockingCallsIsFine) {
  NoteBlockingCall("before");
  const StepGuard guard;
  EXPECT_TRUE(guard.Check().ok());
}

TEST(StepGuardTest, NamesTheFirstBlockingCall) {
  const StepGuard guard;
  NoteBlockingCall("Channel::Receive");
  NoteBlockingCall("Backend::Wait");
  const absl::Status status = guard.Check();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  const std::string message(status.message());
  EXPECT_NE(message.find("Channel::Receive"), std::string::npos) << message;
  EXPECT_EQ(message.find("Backend::Wait"), std::string::npos) << message;
}

TEST(StepGuardTest, TheNextStepStartsClean) {
  {
    const StepGuard guard;
    NoteBlockingCall("Backend::Allocate");
    EXPECT_FALSE(guard.Check().ok());
  }
  NoteBlockingCall("between");
  const StepGuard guard;
  EXPECT_TRUE(guard.Check().ok());
}

TEST(StepGuardTest, OtherThreadsMayBlock) {
  const StepGuard guard;
  std::thread([] { NoteBlockingCall("Rendezvous::Get"); }).join();
  EXPECT_TRUE(guard.Check().ok());
}

TEST(StepGuardDeathTest, DoesNotNest) {
  const StepGuard guard;
  EXPECT_DEATH(StepGuard(), "do not nest");
}

}  // namespace
}  // namespace tandem
