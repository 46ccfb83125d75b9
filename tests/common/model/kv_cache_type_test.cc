#include "common/model/kv_cache_type.h"

#include <gtest/gtest.h>

namespace tandem::model {
namespace {

TEST(KvCacheTypeTest, BlocksMustFitIntoRowsOfKAndOfV) {
  ModelSpec spec;
  spec.head_dim = spec.value_dim = 96;
  spec.kv_groups = {{0, {0}}};
  for (const auto type :
       {tensor::Type::kF32, tensor::Type::kF16, tensor::Type::kBF16, tensor::Type::kQ8_0}) {
    EXPECT_TRUE(CheckKvCacheType(spec, type).ok());
  }
  spec.head_dim = 80;
  EXPECT_TRUE(CheckKvCacheType(spec, tensor::Type::kBF16).ok());
  EXPECT_EQ(CheckKvCacheType(spec, tensor::Type::kQ8_0),
            absl::InvalidArgumentError(
                "--kv-cache-type q8_0 needs heads whose K and V sizes are multiples of 32, the "
                "model's are 80 and 96: use f16 or bf16"));
  spec.head_dim = 96;
  spec.value_dim = 16;
  EXPECT_FALSE(CheckKvCacheType(spec, tensor::Type::kQ8_0).ok());
  // Of every group.
  spec.value_dim = 96;
  EXPECT_TRUE(CheckKvCacheType(spec, tensor::Type::kQ8_0).ok());
  spec.kv_groups.push_back({.window_tokens = 8, .layers = {1}, .heads = HeadSizes{1, 40, 40}});
  EXPECT_FALSE(CheckKvCacheType(spec, tensor::Type::kQ8_0).ok());
}

}  // namespace
}  // namespace tandem::model
