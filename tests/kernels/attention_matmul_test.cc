// AttentionMatMul: attention and the product with its output have the same bits together as one
// after the other, wherever rows come from: a block alone, or a merge of what several computed.
#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/kernels/attention_problem.h"
#include "tests/kernels/matmul_problem.h"

namespace tandem::kernels {
namespace {

using cpu::Matrix;
using cpu::RandomMatrix;
using tensor::Type;

constexpr uint32_t kRows = 35;

class AttentionMatMulTest : public testing::TestWithParam<BackendCase> {
 protected:
  int32_t length() const { return GetParam().slow() ? 600 : 1200; }

  // The product with the whole output, which begins in column `begin` of the weight.
  MatMulParams Product(const AttentionParams& attention, Type type, uint32_t begin) {
    const uint32_t count = attention.heads * attention.pages.value_dim;
    weights_.push_back(RandomMatrix(4, type, kRows, (begin + count + 255) / 256 * 256));
    Weight weight = weights_.back().weight();
    weight.col_begin = begin;
    weight.col_count = count;
    MatMulParams product = {attention.out, attention.tokens, count, 1, {}};
    product.projections[0] = {rig_.backend().PlaceWeight(weight).value(), nullptr,
                              rig_.Poisoned(size_t{attention.tokens} * kRows), kRows};
    return product;
  }

  std::vector<float> Result(const MatMulParams& product) {
    return rig_.Get(product.projections[0].y, size_t{product.tokens} * kRows);
  }

  void ExpectSameBitsAsParts(const AttentionShape& shape, const std::vector<QueryRows>& batch,
                             Type type, uint32_t begin = 0) {
    const AttentionMatMulParams parts = Call(shape, batch, type, begin);
    rig_.Run([&](Backend& b) {
      b.Encode(parts.attention);
      b.Encode(parts.product);
    });
    const std::vector<float> expected = Result(parts.product);
    EXPECT_TRUE(
        std::all_of(expected.begin(), expected.end(), [](float x) { return std::isfinite(x); }));
    // In arrays of its own, so that what the parts have left there cannot be taken for its result.
    const AttentionMatMulParams together = Call(shape, batch, type, begin);
    rig_.Run([&](Backend& b) { b.Encode(together); });
    ExpectSameBits(Result(together.product), expected);
  }

  Rig rig_{GetParam()};

 private:
  AttentionMatMulParams Call(const AttentionShape& shape, const std::vector<QueryRows>& batch,
                             Type type, uint32_t begin) {
    const AttentionParams attention = PagedBatch(shape, batch, 16, 1).Call(rig_, shape.sinks());
    return {attention, Product(attention, type, begin)};
  }

  std::vector<Matrix> weights_;
};
TANDEM_INSTANTIATE_BACKENDS(AttentionMatMulTest);

// One, several and many sequences, some of them in one piece and some padding.
TEST_P(AttentionMatMulTest, DecodeSteps) {
  for (const AttentionShape& shape :
       {AttentionShape{.heads = 6, .heads_per_kv = 3},
        AttentionShape{.heads = 2, .heads_per_kv = 1, .value_dim = 32, .type = Type::kF32},
        // Groups of 32 across heads.
        AttentionShape{.heads = 4, .heads_per_kv = 4, .head_dim = 40, .value_dim = 24},
        AttentionShape{.heads = 3,
        .heads_per_kv = 3,
        .head_dim = 32,
        .value_dim = 160,
        .window = 300,
        .type = Type::kQ8_0,
        .with_sinks = true}}) {
    SCOPED_TRACE(testing::Message() << shape);
    const int32_t end = length();
    const DenseSequence a = MakeSequence(shape, static_cast<uint32_t>(end), 1);
    std::vector<QueryRows> batch = {{&a, end - 1, end}};
    ExpectSameBitsAsParts(shape, batch, Type::kQ4_K);
    for (const int32_t pos : {0, 127, 128, 130}) batch.push_back({&a, pos, pos + 1});
    ExpectSameBitsAsParts(shape, batch, Type::kQ8_0);
    for (const int32_t pos : {1, 200, 255, 257, 300}) batch.push_back({&a, pos, pos + 1});
    batch.insert(batch.begin() + 3, {{&a, 0, 1, true}, {&a, 0, 1, true}});
    ExpectSameBitsAsParts(shape, batch, Type::kQ6_K);
    // A weight that is read in floats.
    ExpectSameBitsAsParts(shape, batch, Type::kBF16);
  }
}

// Chunks of prompts beside decodes and tokens to verify: as many launches as there are sizes.
TEST_P(AttentionMatMulTest, MixedSteps) {
  const AttentionShape shape{.heads = 4, .heads_per_kv = 2, .head_dim = 32, .value_dim = 32};
  const int32_t end = length();
  const DenseSequence a = MakeSequence(shape, static_cast<uint32_t>(end), 1);
  std::vector<QueryRows> batch = {{&a, end - 1, end}, {&a, 100, 149}, {&a, end - 12, end},
                                  {&a, 0, 1, true},   {&a, 9, 10},    {&a, 140, 148}};
  ExpectSameBitsAsParts(shape, batch, Type::kQ4_K);
  // Weights are dequantised for so many.
  batch.push_back({&a, 0, 129});
  ExpectSameBitsAsParts(shape, batch, Type::kQ4_K);
}

// Nothing is merged, or what is depends on the GPU.
TEST_P(AttentionMatMulTest, ShortContextsAndWholePrompts) {
  const AttentionShape shape{.heads = 4, .heads_per_kv = 2, .head_dim = 32, .value_dim = 32};
  const DenseSequence a = MakeSequence(shape, 200, 1);
  for (const int32_t end : {1, 9, 128, 129, 200}) {
    ExpectSameBitsAsParts(shape, {{&a, 0, end}}, Type::kQ8_0);
    ExpectSameBitsAsParts(shape, {{&a, end - 1, end}}, Type::kQ8_0);
  }
}

// A rank's columns may begin within a block, and within a group of 32.
TEST_P(AttentionMatMulTest, PartsOfBlocks) {
  const AttentionShape shape{.heads = 3, .heads_per_kv = 3, .head_dim = 32, .value_dim = 32};
  const int32_t end = length();
  const DenseSequence a = MakeSequence(shape, static_cast<uint32_t>(end), 1);
  for (const uint32_t begin : {32u, 48u, 96u}) {
    ExpectSameBitsAsParts(shape, {{&a, end - 1, end}, {&a, 150, 151}}, Type::kQ6_K, begin);
  }
}

// Weights are dequantised in the largest step, and the merge rounds nothing; smaller ones need room
// for rounded rows beside attention's.
TEST_P(AttentionMatMulTest, APlanOfTheLargestStepCoversSmallerOnes) {
  const auto plan = [&](uint32_t tokens) {
    AttentionMatMulParams sizes{};
    sizes.attention.tokens = tokens;
    sizes.attention.num_seqs = 64;
    sizes.attention.pages = {Type::kF16, nullptr, nullptr, 1, 16, 2, 64, 64};
    sizes.attention.heads = 4;
    sizes.attention.heads_per_kv = 2;
    sizes.attention.max_query_len = 200;
    sizes.attention.max_context_len = 100'000;
    sizes.product = {nullptr, tokens, 256, 1, {}};
    sizes.product.projections[0] = {
        {.type = Type::kQ4_K, .rows = kRows, .cols = 256, .col_count = 256},
        nullptr,
        nullptr,
        kRows};
    rig_.backend().BeginEncode(EncodeMode::kPlan);
    rig_.backend().Encode(sizes);
    return rig_.backend().FinishPlan().value();
  };
  const auto largest = plan(2000);
  for (const uint32_t tokens : {256u, 200u, 64u}) EXPECT_EQ(plan(tokens), largest) << tokens;
}

// A row of the result depends on its own context alone.
TEST_P(AttentionMatMulTest, OtherRowsDoNotShow) {
  const AttentionShape shape{.heads = 4, .heads_per_kv = 2, .head_dim = 32, .value_dim = 32};
  const int32_t end = length();
  const DenseSequence a = MakeSequence(shape, static_cast<uint32_t>(end), 1);
  const auto result = [&](const std::vector<QueryRows>& batch) {
    const AttentionParams attention = PagedBatch(shape, batch, 16, 1).Call(rig_);
    const MatMulParams product = Product(attention, Type::kQ4_K, 0);
    rig_.Run([&](Backend& b) { b.Encode(AttentionMatMulParams{attention, product}); });
    const std::vector<float> rows = Result(product);
    return std::vector<float>(rows.begin(), rows.begin() + kRows);
  };
  // Two rows: cuda multiplies a single one in bytes, several in BF16.
  std::vector<QueryRows> batch = {{&a, end - 1, end}, {&a, 9, 10}};
  const std::vector<float> expected = result(batch);
  while (batch.size() < 20) {
    const int32_t pos = 25 * static_cast<int32_t>(batch.size());
    batch.push_back({&a, pos, pos + 1});
    if (batch.size() == 3 || batch.size() == 5 || batch.size() % 10 == 0)
      ExpectSameBits(result(batch), expected);
  }
}

}  // namespace
}  // namespace tandem::kernels
