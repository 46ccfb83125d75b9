#include "common/model/draft_model.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "common/model/build_spec.h"
#include "tests/common/model/tiny_model.h"

namespace tandem::model {
namespace {

TEST(DraftModelTest, SharesBlocksWithTheFirstGroupWithoutAWindow) {
  ModelSpec spec;
  EXPECT_EQ(FullAttentionGroup(spec), 0u) << "none";
  spec.kv_groups = {{.window_tokens = 32, .layers = {0}}};
  EXPECT_EQ(FullAttentionGroup(spec), 1u) << "none";
  spec.kv_groups.push_back({.window_tokens = 0, .layers = {1}});
  EXPECT_EQ(FullAttentionGroup(spec), 1u);
  spec.kv_groups[0].window_tokens = 0;
  EXPECT_EQ(FullAttentionGroup(spec), 0u);
}

// What is said of a draft model, for a model of 37 tokens t0, t1, ...
std::string SaidOf(const std::function<void(TinyModel&)>& change) {
  TinyModel tiny;
  const BuiltModel model = BuildTiny(tiny);
  tiny.layers = 1;
  change(tiny);
  const BuiltModel draft = BuildTiny(tiny);
  const auto spec = BuildSpec(model.file), draft_spec = BuildSpec(draft.file);
  EXPECT_TRUE(spec.ok() && draft_spec.ok()) << spec.status() << draft_spec.status();
  if (!spec.ok() || !draft_spec.ok()) return "";
  return std::string(CheckDraftModel(model.file, *spec, draft.file, *draft_spec).message());
}

TEST(DraftModelTest, ItsTokensAreTheModels) {
  EXPECT_EQ(SaidOf([](TinyModel&) {}), "");
  EXPECT_EQ(SaidOf([](TinyModel& tiny) { tiny.vocab = 36; }),
            "as a draft model: its vocabulary has 36 rows, the model's 37");
  EXPECT_EQ(SaidOf([](TinyModel& tiny) { tiny.other_token = 5; }),
            "as a draft model: its token 5 is \"other\", the model's \"t5\"");
}

TEST(DraftModelTest, ItsContextReachesAsFar) {
  ModelSpec draft;
  draft.context_length = 64;
  EXPECT_EQ(CheckDraftContext(draft, 64), absl::OkStatus());
  EXPECT_EQ(CheckDraftContext(draft, 65).message(),
            "as a draft model: its context length is 64, needed --max-model-len 65");
}

}  // namespace
}  // namespace tandem::model
