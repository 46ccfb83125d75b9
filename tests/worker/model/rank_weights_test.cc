// What a rank has of a model's weights.
#include "worker/model/rank_weights.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <vector>

#include "common/model/build_spec.h"
#include "common/model/shard.h"
#include "common/tensor/dequantize.h"
#include "kernels/factory.h"
#include "tests/common/model/tiny_model.h"

namespace tandem::worker {
namespace {

std::vector<uint32_t> BitsOf(const float* values, size_t count) {
  std::vector<uint32_t> bits;
  for (size_t i = 0; i < count; ++i) bits.push_back(std::bit_cast<uint32_t>(values[i]));
  return bits;
}

// A bias of 32 values is one block: the second rank's begin in the middle of it.
TEST(RankWeightsTest, AVectorMayBeCutInsideABlock) {
  model::TinyModel tiny;
  tiny.kv_heads = 4;
  tiny.qkv_bias = true;
  tiny.vector_type = tensor::Type::kQ8_0;
  const model::BuiltModel built = model::BuildTiny(tiny);
  const auto spec = model::BuildSpec(built.file);
  ASSERT_TRUE(spec.ok()) << spec.status();
  std::vector<float> whole(32);
  tensor::Dequantize(tensor::Type::kQ8_0, built.file.FindTensor("blk.1.attn_k.bias")->data,
                     whole.data(), whole.size());
  const auto backend = kernels::MakeBackend({.threads = 1});
  ASSERT_TRUE(backend.ok()) << backend.status();
  for (const int rank : {0, 1}) {
    const auto plan = model::MakeShardPlan(*spec, rank, /*size=*/2);
    ASSERT_TRUE(plan.ok()) << plan.status();
    const auto weights = RankWeights::Load(built.file, *spec, *plan, **backend, {});
    ASSERT_TRUE(weights.ok()) << weights.status();
    EXPECT_EQ(BitsOf((*weights)->Vector(model::Role::kAttnKBias, 1), 16),
              BitsOf(whole.data() + 16 * rank, 16))
        << rank;
  }
}

}  // namespace
}  // namespace tandem::worker
