// Shapes that the golden models do not have: 6 query heads over 3 KV heads, one KV head for all,
// vocabularies that no rank count divides, row-parallel cuts inside a 256-value block. On the
// scalar backend N ranks must give what one gives, up to the order of float sums.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tests/cluster/worker_driver.h"

namespace tandem::testing {
namespace {

constexpr double kMaxAbsDiff = 1e-4;
constexpr size_t kNewTokens = 16;

struct Shape {
  std::string name;
  TokenId vocab;
  std::vector<int> ranks;  // possible ones besides 1
  std::vector<int> refused;
};

void PrintTo(const Shape& shape, std::ostream* out) { *out << shape.name; }

class OddShapesTest : public ::testing::TestWithParam<Shape> {
 protected:
  config::ServerConfig Options(int ranks) const {
    auto options = TestServerConfig("tests/cluster/" + GetParam().name + ".gguf");
    options.worker.device.cpu_kernels = config::CpuKernels::kReference;
    options.cluster.tensor_parallel_size = ranks;
    return options;
  }
  std::vector<TokenId> Prompt() const {
    std::mt19937 random(5);
    std::vector<TokenId> prompt(40);
    for (TokenId& token : prompt) token = static_cast<TokenId>(random()) & 0x7fffffff;
    for (TokenId& token : prompt) token %= GetParam().vocab;
    prompt[3] = GetParam().vocab - 1;  // the last row of the last rank's slice
    return prompt;
  }
};

TEST_P(OddShapesTest, AnyRankCountGivesTheSame) {
  const std::vector<int> wanted = {0, 17, 39};
  auto one = WorkerDriver::Start(Options(1));
  ASSERT_TRUE(one.ok()) << one.status();
  auto reference = (*one)->Prefill(Prompt(), wanted, 64);
  auto reference_tokens = GreedyTokens(**one, Prompt(), kNewTokens);
  ASSERT_TRUE(reference.ok() && reference_tokens.ok());
  for (int ranks : GetParam().ranks) {
    auto many = WorkerDriver::Start(Options(ranks));
    ASSERT_TRUE(many.ok()) << many.status();
    auto logits = (*many)->Prefill(Prompt(), wanted, 64);
    ASSERT_TRUE(logits.ok()) << logits.status();
    for (size_t row = 0; row < wanted.size(); ++row) {
      ASSERT_EQ((*logits)[row].size(), static_cast<size_t>(GetParam().vocab));
      for (size_t i = 0; i < (*logits)[row].size(); ++i) {
        ASSERT_NEAR((*logits)[row][i], (*reference)[row][i], kMaxAbsDiff)
            << ranks << " ranks, position " << wanted[row] << ", id " << i;
      }
    }
    auto tokens = GreedyTokens(**many, Prompt(), kNewTokens);
    ASSERT_TRUE(tokens.ok()) << tokens.status();
    EXPECT_EQ(*tokens, *reference_tokens) << ranks << " ranks";
  }
  for (int ranks : GetParam().refused) {
    EXPECT_EQ(WorkerDriver::Start(Options(ranks)).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, OddShapesTest,
                         ::testing::Values(Shape{"heads_6_over_3", 1031, {2, 3, 6}, {4, 5}},
                                           Shape{"one_kv_head", 517, {2, 4}, {3}},
                                           Shape{"cut_inside_blocks", 700, {2, 4}, {3}},
                                           Shape{"ffn_4864", 300, {2, 4}, {3}}),
                         [](const ::testing::TestParamInfo<Shape>& shape) {
                           return shape.param.name;
                         });

}  // namespace
}  // namespace tandem::testing
