#include "coordinator/observe/server_state.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tandem::coordinator {
namespace {

using Stage = RankProgress::Stage;

RankProgress Loading(uint64_t done_bytes, uint64_t total_bytes) {
  return {.stage = Stage::kLoading, .done_bytes = done_bytes, .total_bytes = total_bytes};
}

TEST(ServerStateTest, TellsHowFarTheWorkersAre) {
  ServerState state(4);
  EXPECT_EQ(state.Get().Text(), "waiting for ranks 0/4");
  state.SetProgress(2, {.stage = Stage::kConnected});
  EXPECT_EQ(state.Get().Text(), "waiting for ranks 1/4");
  for (const size_t rank : {0, 1, 3}) state.SetProgress(rank, {.stage = Stage::kConnected});
  EXPECT_EQ(state.Get().Text(), "loading 0%");
  state.SetProgress(0, Loading(74, 100));
  state.SetProgress(1, Loading(74, 100));
  EXPECT_EQ(state.Get().Text(), "loading 37%");
  for (size_t rank = 0; rank < 4; ++rank) state.SetProgress(rank, {.stage = Stage::kReady});
  EXPECT_EQ(state.Get().Text(), "starting");
  state.SetStarted();
  EXPECT_EQ(state.Get().Text(), "ready");
}

TEST(ServerStateTest, ARecoveryTellsHowFarItIs) {
  ServerState state(2);
  for (size_t rank = 0; rank < 2; ++rank) state.SetProgress(rank, {.stage = Stage::kReady});
  state.SetStarted();
  state.SetRecovering(true);
  state.SetProgress(1, {.stage = Stage::kMissing});
  EXPECT_EQ(state.Get().Text(), "recovering: waiting for ranks 1/2");
  state.SetProgress(0, {.stage = Stage::kConnected});
  state.SetProgress(1, Loading(1, 2));
  EXPECT_EQ(state.Get().Text(), "recovering: loading 25%");
  EXPECT_TRUE(state.Get().takes_requests());
  EXPECT_FALSE(state.Get().is_ready());
}

TEST(ServerStateTest, TheEndIsFinal) {
  ServerState state(1);
  state.SetStarted();
  state.SetDraining();
  state.SetRecovering(true);
  EXPECT_EQ(state.Get().Text(), "draining") << "also while workers are replaced";
  state.SetBroken();
  EXPECT_EQ(state.Get().Text(), "broken");
  state.SetRecovering(false);
  EXPECT_EQ(state.Get().Text(), "broken");
}

TEST(ServerStateTest, AStuckEngineIsSaid) {
  ServerState state(1);
  state.SetProgress(0, {.stage = Stage::kReady});
  state.SetStarted();
  state.SetStuck(true);
  EXPECT_EQ(state.Get().Text(), "ready (the engine gives no sign of life)");
  EXPECT_FALSE(state.Get().is_live());
  state.SetStuck(false);
  EXPECT_TRUE(state.Get().is_ready());
}

TEST(ServerStateTest, ItsListenerLearnsOfChangesAlone) {
  ServerState state(1);
  std::vector<std::string> heard;
  state.SetListener([&](const ServerView& view) { heard.push_back(view.Text()); });
  state.SetProgress(0, {.stage = Stage::kMissing});
  state.SetProgress(0, {.stage = Stage::kReady});
  state.SetStarted();
  state.SetStarted();
  state.SetListener(nullptr);
  state.SetDraining();
  EXPECT_EQ(heard, (std::vector<std::string>{"waiting for ranks 0/1", "starting", "ready"}));
}

}  // namespace
}  // namespace tandem::coordinator
