#include "tests/kernels/attention_problem.h"

namespace tandem::kernels {
namespace {

class AttentionTest : public testing::TestWithParam<BackendCase> {};
TANDEM_INSTANTIATE_BACKENDS(AttentionTest);

const tensor::Type kF32 = tensor::Type::kF32, kF16 = tensor::Type::kF16,
                   kBF16 = tensor::Type::kBF16, kQ8_0 = tensor::Type::kQ8_0;

std::vector<AttentionShape> Shapes() {
  return {
      {.heads = 14, .heads_per_kv = 7},
      {.heads = 14, .heads_per_kv = 7, .type = kF32},
      {.heads = 4, .heads_per_kv = 1, .head_dim = 24, .value_dim = 24},
      {.heads = 3, .heads_per_kv = 3, .head_dim = 5, .value_dim = 9, .type = kF32},
      {.heads = 2, .heads_per_kv = 2, .head_dim = 33, .value_dim = 70},
      {.heads = 2, .heads_per_kv = 1, .head_dim = 128, .value_dim = 128, .window = 100},
      {.heads = 4, .heads_per_kv = 2, .window = 1},
      {.heads = 4, .heads_per_kv = 2, .window = 64, .type = kF32},
      {.heads = 3, .heads_per_kv = 2, .first_head = 3},  // half a group, then a whole one
      {.heads = 70,
       .heads_per_kv = 70,
       .head_dim = 16,
       .value_dim = 16},  // more heads than an item takes
      {.heads = 4, .heads_per_kv = 2, .softcap = 3},
      {.heads = 4, .heads_per_kv = 2, .window = 20, .softcap = 30, .with_sinks = true},
      {.heads = 8, .heads_per_kv = 4, .window = 70, .type = kF32, .with_sinks = true},
      {.heads = 3, .heads_per_kv = 2, .first_head = 3, .with_sinks = true},
      {.heads = 4, .heads_per_kv = 2, .head_dim = 40, .value_dim = 24, .type = kBF16},
      {.heads = 4, .heads_per_kv = 2, .window = 33, .type = kBF16, .softcap = 50},
      {.heads = 4, .heads_per_kv = 2, .head_dim = 96, .value_dim = 32, .type = kQ8_0},
      {.heads = 2, .heads_per_kv = 1, .head_dim = 128, .value_dim = 128, .type = kQ8_0},
      {.heads = 2, .heads_per_kv = 1, .window = 65, .type = kQ8_0, .with_sinks = true},
      {.heads = 14, .heads_per_kv = 7, .type = kQ8_0},
      {.heads = 4, .heads_per_kv = 2, .window = 32, .chunked = true},
      {.heads = 2, .heads_per_kv = 1, .window = 47, .type = kF32, .chunked = true},
  };
}

// Queries over one compressed row per position, as MLA reads it.
std::vector<AttentionShape> LatentShapes() {
  return {
      {.heads = 16, .heads_per_kv = 16, .head_dim = 72, .value_dim = 56, .latent = true},
      {.heads = 5,
       .heads_per_kv = 5,
       .head_dim = 33,
       .value_dim = 33,
       .type = kF32,
       .softcap = 4,
       .latent = true},
      {.heads = 8,
       .heads_per_kv = 16,
       .head_dim = 48,
       .value_dim = 32,
       .window = 50,
       .type = kBF16,
       .first_head = 8,
       .with_sinks = true,
       .latent = true},
      {.heads = 8,
       .heads_per_kv = 8,
       .head_dim = 96,
       .value_dim = 80,
       .type = kQ8_0,
       .latent = true},
  };
}

// Heads too wide for the kernels of most models.
std::vector<AttentionShape> WideShapes() {
  return {
      {.heads = 4, .heads_per_kv = 2, .head_dim = 192, .value_dim = 128},
      {.heads = 2, .heads_per_kv = 1, .head_dim = 200, .value_dim = 136, .type = kBF16},
      {.heads = 2,
       .heads_per_kv = 2,
       .head_dim = 256,
       .value_dim = 256,
       .window = 40,
       .type = kQ8_0,
       .softcap = 50},
      {.heads = 3, .heads_per_kv = 3, .head_dim = 250, .value_dim = 250, .type = kF32},
      {.heads = 2,
       .heads_per_kv = 2,
       .head_dim = 576,
       .value_dim = 512,
       .type = kF32,
       .latent = true},
      {.heads = 16,
       .heads_per_kv = 16,
       .head_dim = 576,
       .value_dim = 512,
       .type = kBF16,
       .latent = true},
      {.heads = 3, .heads_per_kv = 3, .head_dim = 288, .value_dim = 320, .type = kQ8_0},
  };
}

// Whether the device refuses the shape, by name, for its size: rows of floats as wide as MLA's do
// not fit in the shared memory of all GPUs.
bool TooWide(Rig& rig, const AttentionShape& shape) {
  if (!rig.backend_case().cuda() || shape.type != kF32 || shape.head_dim < 512) return false;
  AttentionParams sizes{};
  sizes.tokens = sizes.num_seqs = sizes.max_query_len = sizes.max_context_len = 1;
  sizes.pages = {.type = shape.type,
                 .num_blocks = 1,
                 .block_size = 16,
                 .kv_heads = 1,
                 .head_dim = shape.head_dim,
                 .value_dim = shape.value_dim,
                 .latent = shape.latent};
  sizes.heads = sizes.heads_per_kv = shape.heads;
  rig.backend().BeginEncode(EncodeMode::kPlan);
  rig.backend().Encode(sizes);
  const absl::Status refused = rig.backend().FinishPlan().status();
  if (refused.ok()) return false;
  EXPECT_NE(std::string(refused.message()).find("attention: heads of 576 values with F32 pages"),
            std::string::npos)
      << refused;
  return true;
}

void ExpectTheFormula(Rig& rig, const AttentionShape& shape, const std::vector<QueryRows>& batch) {
  SCOPED_TRACE(testing::Message() << shape);
  std::vector<float> expected;
  for (const QueryRows& rows : batch) {
    const auto part = NaiveAttention(shape, rows);
    expected.insert(expected.end(), part.begin(), part.end());
  }
  ExpectClose(Attend(rig, shape, batch), expected, Tolerance(rig.backend_case(), shape));
}

void ExpectTheFormulaInAMixedBatch(const BackendCase& backend,
                                   const std::vector<AttentionShape>& shapes) {
  for (const AttentionShape& shape : shapes) {
    const DenseSequence a = MakeSequence(shape, 200, 1), b = MakeSequence(shape, 130, 2),
                        c = MakeSequence(shape, 7, 3);
    Rig rig(backend);
    // Decode, whole prefill, a chunk in the middle, no token, a single token.
    ExpectTheFormula(rig, shape,
                     {{&a, 199, 200}, {&c, 0, 7}, {&b, 61, 130}, {&b, 64, 64}, {&c, 0, 1}});
  }
}

TEST_P(AttentionTest, MatchesTheFormulaInAMixedBatch) {
  ExpectTheFormulaInAMixedBatch(GetParam(), Shapes());
}

TEST_P(AttentionTest, MatchesTheFormulaOverLatentPages) {
  ExpectTheFormulaInAMixedBatch(GetParam(), LatentShapes());
}

// One query row per sequence, as a step of decoding has them; contexts of more than one split.
TEST_P(AttentionTest, MatchesTheFormulaInDecode) {
  for (const auto& shapes : {Shapes(), LatentShapes(), WideShapes()}) {
    for (const AttentionShape& shape : shapes) {
      const DenseSequence a = MakeSequence(shape, 300, 1);
      Rig rig(GetParam());
      if (TooWide(rig, shape)) continue;
      ExpectTheFormula(rig, shape, {{&a, 299, 300}, {&a, 0, 1}, {&a, 130, 131}});
    }
  }
}

TEST_P(AttentionTest, MatchesTheFormulaForWideHeads) {
  for (const AttentionShape& shape : WideShapes()) {
    const DenseSequence a = MakeSequence(shape, 140, 1);
    Rig rig(GetParam());
    if (TooWide(rig, shape)) continue;
    ExpectTheFormula(rig, shape, {{&a, 139, 140}, {&a, 0, 7}, {&a, 30, 55}});
  }
}

// DeepSeek-V3's sizes: all its query heads read one row of 512 + 64.
TEST_P(AttentionTest, MatchesTheFormulaAtTheSizesOfRealLatentPages) {
  const AttentionShape shape{
      .heads = 128, .heads_per_kv = 128, .head_dim = 576, .value_dim = 512, .latent = true};
  const DenseSequence a = MakeSequence(shape, 70, 1);
  Rig rig(GetParam());
  ExpectTheFormula(rig, shape, {{&a, 69, 70}, {&a, 3, 5}});
}

TEST_P(AttentionTest, MatchesTheFormulaOverLongContexts) {
  for (const uint32_t window : {0u, 700u}) {
    for (const AttentionShape& shape :
         {AttentionShape{.window = window},
          {.window = window, .type = kQ8_0, .softcap = 20, .with_sinks = true},
          {.window = window, .type = kBF16, .with_sinks = true, .latent = true}}) {
      AttentionShape small = shape;
      small.heads = small.heads_per_kv = 2;
      small.head_dim = small.value_dim = 32;
      const DenseSequence a = MakeSequence(small, 2100, 1);
      Rig rig(GetParam());
      for (const QueryRows& rows :
           {QueryRows{&a, 2099, 2100}, QueryRows{&a, 1020, 1030}, QueryRows{&a, 500, 540}}) {
        ExpectTheFormula(rig, small, {rows});
      }
    }
  }
}

// Prompts of more than one piece, with an early part of the context cached or not.
TEST_P(AttentionTest, MatchesTheFormulaInPromptsOverLongContexts) {
  for (const AttentionShape& s :
       {AttentionShape{.heads = 2, .heads_per_kv = 2, .head_dim = 16, .value_dim = 16},
        AttentionShape{
            .heads = 2, .heads_per_kv = 2, .head_dim = 32, .value_dim = 32, .type = kQ8_0}}) {
    const DenseSequence a = MakeSequence(s, 6300, 1);
    Rig rig(GetParam());
    ExpectTheFormula(rig, s, {{&a, 6260, 6300}, {&a, 4090, 4107}, {&a, 2299, 2300}});
  }
}

// A graph is captured once and stays right when sequences grow, end and begin.
TEST_P(AttentionTest, AReplayedGraphIsRightForOtherLengths) {
  for (const AttentionShape& shape :
       {AttentionShape{.heads = 4, .heads_per_kv = 2, .head_dim = 32, .value_dim = 32},
        AttentionShape{
            .heads = 2, .heads_per_kv = 1, .head_dim = 16, .value_dim = 16, .type = kF32}}) {
    const int32_t length = 900;
    const DenseSequence a = MakeSequence(shape, length, 1);
    const QueryRows last = {&a, length - 1, length};
    Rig rig(GetParam());
    GraphCapture* const graphs = rig.backend().graphs();
    if (graphs == nullptr) GTEST_SKIP() << "no graphs";
    const PagedBatch batch(shape, {last, last, last, last}, 16, 1);
    const AttentionParams p = batch.Call(rig);
    rig.Run([&](Backend& b) { b.Encode(p); });
    rig.backend().BeginEncode(EncodeMode::kCapture);
    rig.backend().Encode(p);
    const auto graph = graphs->Finish();
    ASSERT_TRUE(graph.ok()) << graph.status();
    for (const std::vector<int32_t>& contexts : std::vector<std::vector<int32_t>>{
             {900, 1, 0, 2}, {128, 129, 256, 257}, {0, 0, 0, 0}, {0, 900, 0, 700}}) {
      rig.Execute([&](Backend& b) {
        b.Upload(const_cast<int32_t*>(p.context_lens), contexts.data(),
                 contexts.size() * sizeof(int32_t));
      });
      AttentionParams exact = p;
      exact.max_context_len =
          static_cast<uint32_t>(*std::max_element(contexts.begin(), contexts.end()));
      rig.Execute([&](Backend& b) { b.Encode(exact); });
      const auto expected = PagedBatch::Output(rig, p);
      const std::vector<float> poison(expected.size(), std::nanf(""));
      rig.Execute([&](Backend& b) {
        b.Upload(p.out, poison.data(), poison.size() * sizeof(float));
        graphs->Replay(**graph);
      });
      ExpectSameBits(PagedBatch::Output(rig, p), expected);
    }
  }
}

// Rows that stand in a batch only to fill it: zeros for them, no bit of the others changes.
TEST_P(AttentionTest, PaddingGetsZeros) {
  for (std::vector<AttentionShape> shapes : {Shapes(), LatentShapes()}) {
    for (const AttentionShape& shape : shapes) {
      const DenseSequence a = MakeSequence(shape, 130, 1);
      Rig rig(GetParam());
      ExpectTheFormula(rig, shape,
                       {{&a, 129, 130}, {&a, 0, 1, true}, {&a, 40, 41}, {&a, 0, 1, true}});
      ExpectTheFormula(rig, shape, {{&a, 0, 3, true}, {&a, 10, 30}});
      ExpectTheFormula(rig, shape, {{&a, 0, 1, true}});
    }
  }
}

// Among contexts long enough to be cut into splits.
TEST_P(AttentionTest, PaddingBesideLongContextsGetsZeros) {
  const float never = -std::numeric_limits<float>::infinity();
  for (const bool with_sinks : {false, true}) {
    const AttentionShape shape{
        .heads = 2, .heads_per_kv = 2, .head_dim = 32, .value_dim = 32, .with_sinks = with_sinks};
    const DenseSequence a = MakeSequence(shape, 1100, 1);
    Rig rig(GetParam());
    ExpectTheFormula(rig, shape, {{&a, 0, 1, true}, {&a, 1099, 1100}, {&a, 0, 1, true}});
  }
  const AttentionShape shape{.heads = 2, .heads_per_kv = 2};
  const DenseSequence a = MakeSequence(shape, 1, 1);
  Rig rig(GetParam());
  for (const float value : PagedBatch(shape, {{&a, 0, 1, true}}, 16, 1).Run(rig, {never, never})) {
    EXPECT_EQ(value, 0.0f);
  }
}

// A key or value that is not finite shows in every row that sees it. It shows in no other, except
// on a GPU, whose tiles multiply a prompt's later values by zero.
void ExpectNotFiniteWhereSeen(Rig& rig, const AttentionShape& shape) {
  SCOPED_TRACE(testing::Message() << shape);
  constexpr int32_t kBad = 70, kLength = 90;
  const size_t width = shape.value_dim, row = shape.heads * width;
  const DenseSequence plain = MakeSequence(shape, kLength, 1);
  DenseSequence bad_q = plain, bad_k = plain, bad_v = plain;
  bad_q.q[size_t{kBad} * shape.heads * shape.head_dim + 3] = std::nanf("");  // of the first head
  bad_k.k[size_t{kBad} * shape.head_dim + 3] = std::nanf("");
  bad_v.v[size_t{kBad} * width + 3] = std::nanf("");
  const auto expected = Attend(rig, shape, {{&plain, 0, kLength}});
  const auto begins_as_expected = [&](const std::vector<float>& actual, size_t rows) {
    const auto size = static_cast<ptrdiff_t>(rows * row);
    ExpectSameBits({actual.begin(), actual.begin() + size},
                   {expected.begin(), expected.begin() + size});
  };
  const auto with_bad_q = Attend(rig, shape, {{&bad_q, 0, kLength}});
  EXPECT_TRUE(std::isnan(with_bad_q[kBad * row]));
  EXPECT_FALSE(std::isnan(with_bad_q[kBad * row + width]));
  begins_as_expected(with_bad_q, kBad);
  for (const DenseSequence* bad : {&bad_k, &bad_v}) {
    const auto prompt = Attend(rig, shape, {{bad, 0, kLength}});
    if (!rig.backend_case().cuda()) begins_as_expected(prompt, kBad);
    for (size_t i = kBad * row; i < prompt.size(); i += width)
      ASSERT_TRUE(std::isnan(prompt[i + 3])) << prompt[i + 3] << " in row " << i / width;
    const auto decoded = Attend(rig, shape, {{bad, kLength - 1, kLength}});
    for (size_t i = 0; i < decoded.size(); i += width)
      ASSERT_TRUE(std::isnan(decoded[i + 3])) << decoded[i + 3] << " in head " << i / width;
  }
}

TEST_P(AttentionTest, WhatIsNotFiniteShowsWhereItIsSeen) {
  Rig rig(GetParam());
  for (const bool k_columns : {false, true}) {
    if (k_columns && GetParam().cuda()) continue;  // K lies in rows
    for (const tensor::Type type : {kF32, kF16, kBF16, kQ8_0}) {
      ExpectNotFiniteWhereSeen(
          rig, {.heads = 2, .heads_per_kv = 2, .type = type, .k_columns = k_columns});
    }
  }
}

// A sink that outweighs every score leaves next to nothing; one of minus infinity changes no bit.
TEST_P(AttentionTest, ExtremeSinks) {
  const AttentionShape shape{.heads = 2, .heads_per_kv = 2};
  const DenseSequence a = MakeSequence(shape, 600, 1);
  const PagedBatch batch(shape, {{&a, 599, 600}, {&a, 10, 30}}, 16, 1);
  Rig rig(GetParam());
  const auto plain = batch.Run(rig);
  const float never = -std::numeric_limits<float>::infinity();
  ExpectSameBits(batch.Run(rig, {never, never}), plain);
  const auto mixed = batch.Run(rig, {200.0f, never});
  for (size_t i = 0; i < plain.size(); ++i) {
    if (i / shape.value_dim % 2 == 0) {
      EXPECT_EQ(mixed[i], 0.0f);
    } else {
      EXPECT_EQ(mixed[i], plain[i]);
    }
  }
}

}  // namespace
}  // namespace tandem::kernels
