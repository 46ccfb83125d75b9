// How many launches a layer of a dense model takes, of the ops that the worker encodes for it:
// Q4_K weights, with Q6_K for V and down, as Q4_K_M files have them.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <variant>
#include <vector>

#include "common/tensor/type.h"
#include "kernels/cuda/cuda_backend.h"

namespace tandem::kernels::cuda {
namespace {

using tensor::Type;

constexpr uint32_t kHidden = 256, kInner = 512;
constexpr uint32_t kHeads = 4, kKvHeads = 1, kHeadDim = 64;

// A plan pass launches nothing: addresses need only be there and aligned.
template <typename T>
T* Somewhere() {
  static constexpr uintptr_t kAddress = uintptr_t{1} << 20;
  return reinterpret_cast<T*>(kAddress);
}

MatMulParams Product(uint32_t tokens, uint32_t cols, std::vector<Projection> projections) {
  MatMulParams product = {Somewhere<float>(), tokens, cols, 0, {}};
  for (const Projection& projection : projections)
    product.projections[product.num_projections++] = projection;
  return product;
}

Projection ProjectionOf(Type type, uint32_t rows, uint32_t cols) {
  const Weight weight = {.type = type,
                         .data = Somewhere<std::byte>(),
                         .rows = rows,
                         .cols = cols,
                         .row_stride_bytes = tensor::RowBytes(type, cols),
                         .col_begin = 0,
                         .col_count = cols};
  return {weight, nullptr, Somewhere<float>(), rows};
}

RmsNormParams NormOf(uint32_t rows, uint32_t dim, const float* add) {
  return {Somewhere<float>(), add, Somewhere<float>(), 1e-6f, rows, dim, Somewhere<float>()};
}

const KvPages kPages = {Type::kF16, Somewhere<void>(), Somewhere<void>(), 64,
                        16,         kKvHeads,          kHeadDim,          kHeadDim};

QkvParams Qkv(uint32_t tokens, bool head_norms) {
  QkvParams qkv = {.norm = NormOf(tokens, kHidden, Somewhere<float>()),
                   .product = Product(tokens, kHidden,
                                      {ProjectionOf(Type::kQ4_K, kHeads * kHeadDim, kHidden),
                                       ProjectionOf(Type::kQ4_K, kKvHeads * kHeadDim, kHidden),
                                       ProjectionOf(Type::kQ6_K, kKvHeads * kHeadDim, kHidden)}),
                   .v_norm = {},
                   .q_norm = {},
                   .k_norm = {},
                   .write = {}};
  if (head_norms) {
    qkv.q_norm = NormOf(tokens * kHeads, kHeadDim, nullptr);
    qkv.k_norm = NormOf(tokens * kKvHeads, kHeadDim, nullptr);
  }
  qkv.write.q = qkv.write.k = Somewhere<float>();
  qkv.write.v = Somewhere<float>();
  qkv.write.tokens = tokens;
  qkv.write.heads = kHeads;
  qkv.write.rotary_dims = kHeadDim;
  qkv.write.pages = kPages;
  return qkv;
}

// Of sequences with a token each, or of one with all of them, in contexts of several pieces.
AttentionParams AttentionOf(uint32_t tokens, bool decode) {
  AttentionParams p{};
  p.q = Somewhere<float>();
  p.tokens = tokens;
  p.num_seqs = decode ? tokens : 1;
  p.max_query_len = decode ? 1 : tokens;
  p.max_context_len = 1024;
  p.pages = kPages;
  p.heads = p.heads_per_kv = kHeads;
  p.out = Somewhere<float>();
  return p;
}

FeedForwardParams FeedForward(uint32_t tokens) {
  return {.norm = NormOf(tokens, kHidden, Somewhere<float>()),
          .up = Product(tokens, kHidden,
                        {ProjectionOf(Type::kQ4_K, kInner, kHidden),
                         ProjectionOf(Type::kQ4_K, kInner, kHidden)}),
          .activate = {.function = Activation::kSilu,
                       .gate = Somewhere<float>(),
                       .up = Somewhere<float>(),
                       .rows = tokens,
                       .cols = kInner,
                       .out = Somewhere<float>()},
          .down = Product(tokens, kInner, {ProjectionOf(Type::kQ6_K, kHidden, kInner)})};
}

AttentionMatMulParams Attention(uint32_t tokens, bool decode) {
  return {AttentionOf(tokens, decode),
          Product(tokens, kHidden, {ProjectionOf(Type::kQ4_K, kHidden, kHidden)})};
}

struct Launches {
  uint64_t qkv;
  uint64_t attention;  // and the product with its output
  uint64_t feed_forward;

  bool operator==(const Launches&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const Launches& l) {
    return out << l.qkv << " + " << l.attention << " + " << l.feed_forward;
  }
};

class LayerLaunchesTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(backend_.Open().ok()); }

  template <typename Encode>
  uint64_t Count(Encode encode) {
    backend_.BeginEncode(EncodeMode::kPlan);
    encode();
    const uint64_t launches = backend_.PlannedNodes();
    EXPECT_TRUE(backend_.FinishPlan().ok());
    return launches;
  }
  template <typename Params>
  uint64_t CountOf(const Params& params) {
    return Count([&] { backend_.Encode(params); });
  }
  // Of the composite's parts one after the other.
  template <typename Params>
  uint64_t CountOfParts(const Params& params) {
    return Count([&] { Decompose(params, [&](const auto& part) { backend_.Encode(part); }); });
  }

  Launches Layer(uint32_t tokens, bool decode, bool head_norms = false) {
    return {CountOf(Qkv(tokens, head_norms)), CountOf(Attention(tokens, decode)),
            CountOf(FeedForward(tokens))};
  }

  CudaBackend backend_{"cuda-emulated"};
};

TEST_F(LayerLaunchesTest, OfDecodeSteps) {
  for (const uint32_t tokens : {1u, 8u, 64u}) {
    EXPECT_EQ(Layer(tokens, true), (Launches{2, 3, 3})) << tokens;
    EXPECT_EQ(CountOfParts(Qkv(tokens, false)), 4u);
    EXPECT_EQ(CountOfParts(Attention(tokens, true)), 4u);
    EXPECT_EQ(CountOfParts(FeedForward(tokens)), 6u);
  }
}

TEST_F(LayerLaunchesTest, OfAPromptInTiles) { EXPECT_EQ(Layer(100, false), (Launches{2, 3, 3})); }

// Beyond what tiles take weights are dequantised, and the norms and the activation round their rows
// to BF16. What cuBLASLt launches, once per weight, is not counted.
TEST_F(LayerLaunchesTest, OfALongPrompt) { EXPECT_EQ(Layer(300, false), (Launches{5, 3, 5})); }

// Dense products, with rows in BF16 from the norm and the activation.
TEST_F(LayerLaunchesTest, OfAFeedForwardInBf16) {
  FeedForwardParams params = FeedForward(64);
  for (uint32_t i = 0; i < 2; ++i)
    params.up.projections[i] = ProjectionOf(Type::kBF16, kInner, kHidden);
  std::get<MatMulParams>(params.down).projections[0] = ProjectionOf(Type::kBF16, kHidden, kInner);
  EXPECT_EQ(CountOf(params), 2u);
  EXPECT_EQ(CountOfParts(params), 4u);
}

TEST_F(LayerLaunchesTest, WithNormsOfHeads) {
  EXPECT_EQ(Layer(1, true, true), (Launches{3, 3, 3}));
  EXPECT_EQ(CountOfParts(Qkv(1, true)), 6u);
}

// Q8_0 pages, a temperature, types that are not multiplied in one launch, and heads that are
// rotated in part take a separate launch of RopeWriteKv.
TEST_F(LayerLaunchesTest, OfOtherHeads) {
  for (const uint32_t tokens : {1u, 8u}) {
    QkvParams pages = Qkv(tokens, false);
    pages.write.pages.type = Type::kQ8_0;
    EXPECT_EQ(CountOf(pages), 3u);
    QkvParams temperature = Qkv(tokens, false);
    temperature.write.temperature_scale = 0.1f;
    EXPECT_EQ(CountOf(temperature), 3u);
    QkvParams apart = Qkv(tokens, false);
    apart.product.projections[2].weight.type = Type::kQ8_0;
    EXPECT_EQ(CountOf(apart), 4u);
    // Types that have no launch with others.
    QkvParams grids = Qkv(tokens, false);
    for (const uint32_t i : {0u, 1u, 2u}) grids.product.projections[i].weight.type = Type::kIQ2_XXS;
    EXPECT_EQ(CountOf(grids), 2u);
    grids.product.projections[2].weight.type = Type::kIQ3_S;
    EXPECT_EQ(CountOf(grids), 4u);
    QkvParams in_tiles = Qkv(tokens, false);
    in_tiles.write.halves = true;
    in_tiles.write.rotary_dims = 32;  // less than a tile has
    EXPECT_EQ(CountOf(in_tiles), tokens == 1 ? 2u : 3u);
  }
}

TEST_F(LayerLaunchesTest, OfHeadsInHalves) {
  for (const uint32_t tokens : {1u, 8u, 64u, 128u}) {
    QkvParams halves = Qkv(tokens, false);
    halves.write.halves = true;
    EXPECT_EQ(CountOf(halves), 2u) << tokens;
  }
  QkvParams dense = Qkv(129, false);
  EXPECT_EQ(CountOf(dense), 5u);  // a norm, three weights dequantised, RopeWriteKv
}

// Where gate and up are not one launch with the activation.
TEST_F(LayerLaunchesTest, OfOtherFeedForwards) {
  for (const uint32_t tokens : {1u, 8u}) {
    FeedForwardParams types = FeedForward(tokens);
    types.up.projections[1].weight.type = Type::kQ6_K;
    EXPECT_EQ(CountOf(types), 4u);
    FeedForwardParams ungated = FeedForward(tokens);
    ungated.up.num_projections = 1;
    ungated.activate.up = nullptr;
    EXPECT_EQ(CountOf(ungated), 4u);
    FeedForwardParams part = FeedForward(tokens);
    std::get<MatMulParams>(part.down).projections[0].weight.col_begin = 16;
    // Rows in whole groups of 32 are more than the activation has.
    EXPECT_EQ(CountOf(part), tokens == 1 ? 4u : 5u);
    FeedForwardParams floats = FeedForward(tokens);
    std::get<MatMulParams>(floats.down).projections[0].weight.type = Type::kF32;
    EXPECT_EQ(CountOf(floats), 4u);
  }
}

TEST_F(LayerLaunchesTest, OfADownThatAddsToTheResidual) {
  for (const uint32_t tokens : {1u, 64u}) {
    FeedForwardParams params = FeedForward(tokens);
    const MatMulParams down = std::get<MatMulParams>(params.down);
    params.down = MatMulAddParams{.product = down,
                                  .add = {.y = Somewhere<float>(),
                                          .x = down.projections[0].y,
                                          .gate = nullptr,
                                          .rows = tokens,
                                          .dim = kHidden}};
    EXPECT_EQ(CountOf(params), 3u);
  }
}

}  // namespace
}  // namespace tandem::kernels::cuda
