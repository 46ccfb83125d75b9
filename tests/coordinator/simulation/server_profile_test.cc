#include "coordinator/simulation/server_profile.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_replace.h"

namespace tandem::coordinator {
namespace {

EngineConfig Engine() {
  EngineConfig engine;
  engine.scheduler.max_num_seqs = 7;
  engine.scheduler.max_num_batched_tokens = 77;
  engine.scheduler.chunked_prefill_size = 33;
  engine.scheduler.max_model_len = 500;
  engine.scheduler.target_itl = std::chrono::milliseconds(150);
  engine.scheduler.policy = SchedulingPolicy::kPrefillFirst;
  engine.kv_cache.block_size = 8;
  engine.kv_cache.groups = {{.num_blocks = 100},
                            {.num_blocks = 20, .window_tokens = 64, .chunked = true}};
  engine.kv_cache.snapshots = {.num_snapshots = 3, .interval = 16};
  engine.vocab_size = 1000;
  engine.overlap_below = std::chrono::milliseconds(10);
  engine.max_draft_tokens = 4;
  engine.scheduler.max_draft_rows = 16;
  return engine;
}

ServerProfile Profile() {
  ServerProfile profile =
      ServerProfile::Of(Engine(), {.prefill = {.sizes = {1, 33}, .us = {123.4, 2000}},
                                   .decode = {.sizes = {1, 7}, .us = {130, 250.5}},
                                   .decode_positions = 9.5,
                                   .decode_position_ns = 12.5,
                                   .prefill_position_ns = 0});
  profile.model = "/models/with space.gguf";
  profile.special_ids = {0, 999};
  profile.request_timeout = std::chrono::seconds(9);
  return profile;
}

std::string WriteFile(const std::string& text) {
  const std::string path = testing::TempDir() + "/server.profile";
  std::ofstream(path) << text;
  return path;
}

absl::StatusOr<ServerProfile> Read(const std::string& text) {
  return ReadServerProfile(WriteFile(text), "--simulate");
}

TEST(ServerProfile, ItsFileSaysEverything) {
  const auto read = Read(ToText(Profile()));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(ToText(*read), ToText(Profile()));
  EXPECT_EQ(read->steps, Profile().steps);
  EXPECT_EQ(read->model, Profile().model);
  EXPECT_EQ(read->special_ids, Profile().special_ids);
  EXPECT_EQ(read->request_timeout, std::chrono::seconds(9));
  const auto engine = read->Engine();
  ASSERT_TRUE(engine.ok()) << engine.status();
  EXPECT_EQ(engine->scheduler.max_num_seqs, 7u);
  EXPECT_EQ(engine->scheduler.max_num_batched_tokens, 77u);
  EXPECT_EQ(engine->scheduler.chunked_prefill_size, 33u);
  EXPECT_EQ(engine->scheduler.max_model_len, 500u);
  EXPECT_EQ(engine->scheduler.target_itl, std::chrono::milliseconds(150));
  EXPECT_EQ(engine->scheduler.policy, SchedulingPolicy::kPrefillFirst);
  EXPECT_EQ(engine->kv_cache.Text(), Engine().kv_cache.Text());
  EXPECT_EQ(engine->overlap_below, std::chrono::milliseconds(10));
}

TEST(ServerProfile, GuessesAreNoPartOfIt) {
  const auto engine = Profile().Engine();
  ASSERT_TRUE(engine.ok()) << engine.status();
  EXPECT_EQ(engine->max_draft_tokens, 0u);
  EXPECT_EQ(engine->scheduler.max_draft_rows, 0u);
}

TEST(ServerProfile, StepsThatAlwaysOverlapHaveNoLimit) {
  EngineConfig engine = Engine();
  engine.overlap_below = Duration::max();
  const auto read = Read(ToText(ServerProfile::Of(engine, Profile().steps)));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->Engine()->overlap_below, Duration::max());
}

TEST(ServerProfile, AChunkIsTheWholeStepIfItWas) {
  EngineConfig engine = Engine();
  engine.scheduler.chunked_prefill_size = engine.scheduler.max_num_batched_tokens;
  ServerProfile profile = ServerProfile::Of(engine, Profile().steps);
  EXPECT_EQ(profile.Engine()->scheduler.chunked_prefill_size, 77u);
  ASSERT_TRUE(profile.Set("max-num-batched-tokens=99").ok());
  EXPECT_EQ(profile.Engine()->scheduler.chunked_prefill_size, 99u);
}

TEST(ServerProfile, WhatItsFileCannotHoldIsKnownBefore) {
  ServerProfile profile = Profile();
  profile.steps = {};
  EXPECT_TRUE(profile.CheckWithoutSteps().ok()) << profile.CheckWithoutSteps();
  profile.kv_blocks[0] = 1 << 25;
  EXPECT_EQ(profile.CheckWithoutSteps().message(),
            "kv-blocks is 33554432,20, it must be from 1 to 16777216");
  profile = Profile();
  profile.model = "/models/a#b.gguf";
  EXPECT_EQ(profile.CheckWithoutSteps().message(),
            "a line of a profile cannot hold the model's path '/models/a#b.gguf': it has a #, a "
            "quote or a line's end; give it another name");
}

TEST(ServerProfile, SettingsCanBeChanged) {
  ServerProfile profile = Profile();
  for (const char* setting : {"max-num-seqs=64", "max-num-batched-tokens=640", "kv-blocks=5,6",
                              "enable-prefix-caching=false", "overlap-below="}) {
    const absl::Status status = profile.Set(setting);
    EXPECT_TRUE(status.ok()) << status;
  }
  const auto engine = profile.Engine();
  ASSERT_TRUE(engine.ok()) << engine.status();
  EXPECT_EQ(engine->scheduler.max_num_seqs, 64u);
  EXPECT_EQ(engine->kv_cache.groups[1].num_blocks, 6u);
  EXPECT_FALSE(engine->kv_cache.enable_prefix_cache);
  EXPECT_EQ(engine->overlap_below, Duration::max());
}

TEST(ServerProfile, AChangeThatIsNoneIsNamed) {
  ServerProfile profile = Profile();
  EXPECT_EQ(profile.Set("max-num-seqs").message(), "needed NAME=VALUE, found 'max-num-seqs'");
  EXPECT_EQ(profile.Set("max-num-seqs=0").message(),
            "max-num-seqs is 0, it must be from 1 to 4096");
  EXPECT_EQ(profile.Set("kv-blocks=1,x").message(),
            "kv-blocks is '1,x', it must be a whole number from 1 to 16777216");
  const std::string unknown(profile.Set("seqs=1").message());
  EXPECT_TRUE(unknown.starts_with("no setting 'seqs', there are format, model, ")) << unknown;
}

TEST(ServerProfile, SaysWhatIsWrongInAFile) {
  const std::string path = WriteFile("");
  EXPECT_EQ(ReadServerProfile("/none", "--simulate").status().message(),
            "--simulate /none: cannot be read");
  const auto error = [&](const std::string& from, const std::string& to) {
    return std::string(
        Read(absl::StrReplaceAll(ToText(Profile()), {{from, to}})).status().message());
  };
  const std::string at = "--simulate " + path + ": ";
  EXPECT_EQ(error("format = \"1\"", "format = \"2\""), at + "format is 2, it must be from 1 to 1");
  EXPECT_EQ(error("max-num-seqs = \"7\"\n", ""), at + "there is no 'max-num-seqs'");
  EXPECT_EQ(error("max-num-seqs", "sequences"), at + "'sequences' is no setting of a profile");
  EXPECT_EQ(error("max-num-seqs = \"7\"", "max-num-seqs = \"x\""),
            at + "max-num-seqs is 'x', it must be a whole number from 1 to 4096");
  EXPECT_EQ(error("kv-windows = \"0,64\"", "kv-windows = \"0\""),
            at + "kv-blocks, kv-windows and kv-chunked need one value for each KV group, have 2, "
                 "1 and 2");
  EXPECT_EQ(error("kv-blocks = \"100,20\"", "kv-blocks = \"16777216,1\""),
            at + "kv-blocks: a simulation keeps count of at most 16777216 blocks, found 16777217");
  EXPECT_EQ(error("prefill-tokens = \"1,33\"", "prefill-tokens = \"33,1\""),
            at + "prefill-us: needed ascending sizes from 1 on, found 1 after 33");
  EXPECT_EQ(error("snapshot-interval = \"16\"", "snapshot-interval = \"17\""),
            at + "a snapshot every 17 tokens: need a multiple of the block size, 8");
}

// Whatever it says, it ends in a profile or in an error.
TEST(ServerProfile, NothingInAFileEndsTheProgram) {
  const std::string text = ToText(Profile());
  for (size_t i = 0; i < text.size(); i += 3) {
    for (const char* piece : {"", "-1", "99999999999", "nan", "\"", ","}) {
      std::string broken = text;
      broken.replace(i, 2, piece);
      const auto read = Read(broken);
      EXPECT_TRUE(read.ok() || !read.status().message().empty());
    }
  }
}

}  // namespace
}  // namespace tandem::coordinator
