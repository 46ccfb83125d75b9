// All the ways in which a row can be computed give the same bits. On a GPU a row's kernel depends
// on how many query rows its sequence has in the step: there a chunk's results agree with those of
// other chunks within rounding. Other sequences show nowhere.
#include "tests/kernels/attention_problem.h"

namespace tandem::kernels {
namespace {

class AttentionBitsTest : public testing::TestWithParam<BackendCase> {};
TANDEM_INSTANTIATE_BACKENDS(AttentionBitsTest);

const tensor::Type kF32 = tensor::Type::kF32, kF16 = tensor::Type::kF16,
                   kBF16 = tensor::Type::kBF16, kQ8_0 = tensor::Type::kQ8_0;

std::vector<AttentionShape> BitShapes() {
  return {
      {.heads = 6, .heads_per_kv = 3},
      {.heads = 2, .heads_per_kv = 1, .head_dim = 40, .value_dim = 24, .type = kF32},
      {.heads = 8, .heads_per_kv = 8, .head_dim = 64, .value_dim = 32, .type = kQ8_0},
      {.heads = 7, .heads_per_kv = 7, .head_dim = 32, .value_dim = 32, .type = kBF16},
      {.heads = 4, .heads_per_kv = 4, .head_dim = 16, .value_dim = 16, .window = 600},
      {.heads = 2,
       .heads_per_kv = 2,
       .head_dim = 16,
       .value_dim = 16,
       .window = 48,
       .type = kF32,
       .chunked = true},
      {.heads = 2,
       .heads_per_kv = 2,
       .head_dim = 32,
       .value_dim = 32,
       .window = 100,
       .type = kQ8_0,
       .softcap = 8,
       .with_sinks = true},
      {.heads = 5,
       .heads_per_kv = 5,
       .head_dim = 40,
       .value_dim = 24,
       .type = kBF16,
       .with_sinks = true,
       .latent = true},
  };
}

// Of pages whose K may lie in columns.
std::vector<AttentionShape> ColumnShapes() {
  std::vector<AttentionShape> shapes;
  for (const tensor::Type type : {kF32, kF16, kBF16, kQ8_0}) {
    shapes.push_back({.heads = 6, .heads_per_kv = 3, .type = type});
    AttentionShape windowed = {.heads = 9,
                               .heads_per_kv = 9,
                               .head_dim = 96,
                               .value_dim = 32,
                               .window = 70,
                               .type = type,
                               .softcap = 8,
                               .with_sinks = true};
    shapes.push_back(windowed);
    windowed.heads = 8;  // of which each four are one block
    windowed.heads_per_kv = 4;
    shapes.push_back(windowed);
    windowed.chunked = true;
    shapes.push_back(windowed);
  }
  return shapes;
}

// Long enough for three splits; the reference cuts nothing and takes its time.
int32_t Length(const BackendCase& backend) {
  return backend.kernels == "reference" ? 110 : backend.slow() ? 270 : 1090;
}

void ExpectSameResult(const Rig& rig, const AttentionShape& shape, const std::vector<float>& actual,
                      const std::vector<float>& expected) {
  if (!rig.backend_case().cuda()) return ExpectSameBits(actual, expected);
  ExpectClose(actual, expected, Tolerance(rig.backend_case(), shape));
}

std::vector<float> Slice(const std::vector<float>& rows, const AttentionShape& s, int32_t begin,
                         int32_t end) {
  const auto row = static_cast<ptrdiff_t>(s.heads * s.value_dim);
  return {rows.begin() + begin * row, rows.begin() + end * row};
}

TEST_P(AttentionBitsTest, BlockSizeDoesNotShow) {
  const int32_t length = Length(GetParam());
  for (const AttentionShape& shape : BitShapes()) {
    const DenseSequence a = MakeSequence(shape, length, 1);
    Rig rig(GetParam());
    for (const QueryRows& rows :
         {QueryRows{&a, length - 1, length}, QueryRows{&a, length / 2 - 35, length / 2 - 5}}) {
      const auto expected = Attend(rig, shape, {rows}, 16);
      for (const uint32_t block_size : {1u, 8u, 48u, 256u}) {
        ExpectSameBits(Attend(rig, shape, {rows}, block_size, block_size), expected);
      }
    }
  }
}

// Nor does how K lies in them.
TEST_P(AttentionBitsTest, ColumnsOfKDoNotShow) {
  if (GetParam().cuda()) GTEST_SKIP() << "K lies in rows";
  const int32_t length = Length(GetParam());
  for (const AttentionShape& in_rows : ColumnShapes()) {
    SCOPED_TRACE(testing::Message() << in_rows);
    AttentionShape in_columns = in_rows;
    in_columns.k_columns = true;
    const DenseSequence a = MakeSequence(in_rows, static_cast<uint32_t>(length), 5),
                        b = MakeSequence(in_rows, 37, 6);
    Rig rig(GetParam());
    for (const std::vector<QueryRows>& batch : std::vector<std::vector<QueryRows>>{
             {{&a, length - 1, length}},
             {{&a, length / 2 - 35, length / 2 - 5}},
             {{&a, 0, length}},
             {{&b, 36, 37}, {&a, length - 3, length}, {&b, 0, 1, true}, {&b, 15, 17}}}) {
      const auto expected = Attend(rig, in_rows, batch);
      for (const uint32_t block_size : {16u, 32u, 64u})
        ExpectSameBits(Attend(rig, in_columns, batch, block_size, block_size), expected);
    }
  }
}

TEST_P(AttentionBitsTest, ChunksAndDecodeDoNotShow) {
  const int32_t length = Length(GetParam());
  for (const AttentionShape& shape : BitShapes()) {
    const DenseSequence a = MakeSequence(shape, length, 2);
    Rig rig(GetParam());
    const auto whole = Attend(rig, shape, {{&a, 0, length}});
    for (const int32_t chunk : {7, 64, 512}) {
      // Small chunks over the last part only, for time.
      const int32_t from = chunk == 512 ? 0 : std::max(0, length - 5 * chunk);
      for (int32_t begin = from; begin < length; begin += chunk) {
        const int32_t end = std::min(length, begin + chunk);
        ExpectSameResult(rig, shape, Attend(rig, shape, {{&a, begin, end}}),
                         Slice(whole, shape, begin, end));
      }
    }
    for (const int32_t pos :
         {0, 1, 63, 64, 65, 510, 511, 512, 513, 600, 1023, 1024, 1025, length - 1}) {
      if (pos >= length) continue;
      ExpectSameResult(rig, shape, Attend(rig, shape, {{&a, pos, pos + 1}}),
                       Slice(whole, shape, pos, pos + 1));
    }
  }
}

TEST_P(AttentionBitsTest, OtherRowsDoNotShow) {
  const int32_t count = GetParam().kernels == "emulated" ? 12 : 32;
  const int32_t step = Length(GetParam()) * 16 / 25 / count;
  for (const AttentionShape& shape : BitShapes()) {
    Rig rig(GetParam());
    std::vector<DenseSequence> sequences;
    for (int32_t i = 0; i < count; ++i) {
      sequences.push_back(
          MakeSequence(shape, static_cast<uint32_t>(20 + step * i), static_cast<uint32_t>(i)));
    }
    std::vector<QueryRows> batch;
    for (int32_t i = 0; i < count; ++i) {
      const int32_t length = 20 + step * i;
      const int32_t begin = i % 3 == 0 ? length - 1 : length - 13;  // decodes among chunks
      batch.push_back({&sequences[static_cast<size_t>(i)], begin, length});
    }
    const auto together = Attend(rig, shape, batch);
    int32_t at = 0;
    for (const QueryRows& rows : batch) {
      const int32_t next = at + rows.end - rows.begin;
      ExpectSameBits(Attend(rig, shape, {rows}, 16, 9), Slice(together, shape, at, next));
      at = next;
    }
  }
}

// Alone a long context is spread over all blocks of a GPU, among others it is cut elsewhere.
TEST_P(AttentionBitsTest, OtherContextsDoNotShow) {
  for (const AttentionShape& shape :
       {AttentionShape{.heads = 4, .heads_per_kv = 2, .head_dim = 32, .value_dim = 32},
        AttentionShape{.heads = 2,
        .heads_per_kv = 1,
        .head_dim = 16,
        .value_dim = 16,
        .window = 1000,
        .type = kF32,
        .with_sinks = true}}) {
    const DenseSequence a = MakeSequence(shape, 2100, 1), b = MakeSequence(shape, 700, 2);
    Rig rig(GetParam());
    const QueryRows longest = {&a, 2099, 2100}, verified = {&a, 1990, 2000}, other = {&b, 699, 700};
    const auto alone = Attend(rig, shape, {longest});
    const auto verified_alone = Attend(rig, shape, {verified});
    for (const std::vector<QueryRows>& before :
         {std::vector<QueryRows>{other}, {other, {&b, 100, 150}, {&b, 0, 1, true}, other}}) {
      std::vector<QueryRows> batch = before;
      batch.insert(batch.end(), {longest, verified, other});
      int32_t at = 0;
      for (const QueryRows& rows : before) at += rows.end - rows.begin;
      const auto together = Attend(rig, shape, batch, 16, 5);
      ExpectSameBits(Slice(together, shape, at, at + 1), alone);
      ExpectSameBits(Slice(together, shape, at + 1, at + 11), verified_alone);
    }
  }
}

// Nor where its parts are so many that those of one block are put together in several levels.
TEST_P(AttentionBitsTest, OtherLongContextsDoNotShow) {
  if (GetParam().kernels == "reference") GTEST_SKIP() << "it cuts nothing";
  const AttentionShape shape = {.heads = 1, .heads_per_kv = 1, .head_dim = 16, .value_dim = 16};
  constexpr uint32_t kLength = 5000;
  const DenseSequence a = MakeSequence(shape, kLength, 1);
  Rig rig(GetParam());
  const QueryRows last = {&a, kLength - 1, kLength};
  const auto alone = Attend(rig, shape, {last});
  for (const size_t count : {2u, 5u, 8u}) {
    const auto together = Attend(rig, shape, std::vector<QueryRows>(count, last));
    for (int32_t i = 0; i < static_cast<int32_t>(count); ++i)
      ExpectSameBits(Slice(together, shape, i, i + 1), alone);
  }
}

// Tokens that are verified together have the bits of tokens decoded one by one.
TEST_P(AttentionBitsTest, VerifyingDoesNotShow) {
  const int32_t length = Length(GetParam());
  for (const AttentionShape& shape : BitShapes()) {
    const auto group = static_cast<int32_t>(shape.heads_per_kv);
    const DenseSequence a = MakeSequence(shape, static_cast<uint32_t>(length), 4);
    Rig rig(GetParam());
    for (const int32_t rows : {16, 32}) {
      // Where contexts are long enough, the first of a piece is among them.
      const int32_t begin = std::min(127, length - 32), end = begin + rows / group;
      const auto together = Attend(rig, shape, {{&a, begin, end}});
      for (int32_t pos = begin; pos < end; ++pos) {
        ExpectSameBits(Slice(together, shape, pos - begin, pos - begin + 1),
                       Attend(rig, shape, {{&a, pos, pos + 1}}));
      }
    }
  }
}

TEST_P(AttentionBitsTest, ThreadsDoNotShow) {
  const int32_t length = Length(GetParam());
  for (const AttentionShape& shape : BitShapes()) {
    const DenseSequence a = MakeSequence(shape, length, 3);
    Rig rig(GetParam()), other({GetParam().kernels, 5});
    for (const QueryRows& rows :
         {QueryRows{&a, length - 1, length}, QueryRows{&a, length / 3, length}}) {
      ExpectSameBits(Attend(rig, shape, {rows}), Attend(other, shape, {rows}));
    }
  }
}

// One thread takes a token's KV heads together, two threads do if there are enough splits, and five
// take them one by one.
TEST_P(AttentionBitsTest, KvHeadsThatAreReadTogetherDoNotShow) {
  if (GetParam().cuda()) GTEST_SKIP() << "KV heads are apart";
  const bool slow = GetParam().kernels == "reference";
  for (const auto& [type, many, window] :
       std::vector<std::tuple<tensor::Type, bool, uint32_t>>{{kF32, false, 0},
                                                             {kF16, false, 0},
                                                             {kBF16, false, 0},
                                                             {kQ8_0, false, 4150},
                                                             {kF16, true, 0},
                                                             {kBF16, true, 4150},
                                                             {kQ8_0, true, 0}}) {
    // Half a group, two whole ones, and the first of another; with few rows and with many.
    AttentionShape shape{.heads = 6,
                         .heads_per_kv = 2,
                         .head_dim = 32,
                         .value_dim = 32,
                         .window = window,
                         .type = type,
                         .first_head = 3,
                         .with_sinks = true};
    if (many) shape.heads = 36, shape.heads_per_kv = 12, shape.first_head = 6;
    const int32_t length = slow ? 70 : 4200;
    const DenseSequence a = MakeSequence(shape, static_cast<uint32_t>(length), 8),
                        b = MakeSequence(shape, 40, 9);
    Rig one({GetParam().kernels, 1}), two({GetParam().kernels, 2}), five({GetParam().kernels, 5});
    for (const bool k_columns : {false, true}) {
      shape.k_columns = k_columns;
      std::vector<QueryRows> batch = {{&a, length - 1, length}};
      ExpectSameBits(Attend(two, shape, batch), Attend(five, shape, batch));
      ExpectSameBits(Attend(one, shape, batch), Attend(five, shape, batch));
      for (const int32_t end : {1, 16, 17, 30, 39, 40}) batch.push_back({&b, end - 1, end});
      batch.insert(batch.end(), {{&b, 0, 1, true}, {&b, 3, 9}, {&b, 8, 9}, {&b, 9, 10}});
      ExpectSameBits(Attend(two, shape, batch), Attend(five, shape, batch));
      ExpectClose(Slice(Attend(two, shape, batch), shape, 0, 1),
                  NaiveAttention(shape, batch.front()), Tolerance(GetParam(), shape));
    }
  }
}

TEST_P(AttentionBitsTest, APlanAtTheLimitsCoversEveryStep) {
  const AttentionShape shape{.heads = 14, .heads_per_kv = 7};
  const int32_t length = Length(GetParam());
  Rig rig(GetParam());
  // Only sizes matter in a plan pass: no pointer is followed.
  AttentionParams limits{};
  limits.tokens = 64;
  limits.num_seqs = 32;
  limits.pages = {kF16, nullptr, nullptr, 1, 16, 2, 64, 64};
  limits.heads = 14;
  limits.heads_per_kv = 7;
  limits.max_query_len = 64;
  limits.max_context_len = static_cast<uint32_t>(length);
  rig.backend().BeginEncode(EncodeMode::kPlan);
  rig.backend().Encode(limits);
  const auto planned = rig.backend().FinishPlan();
  ASSERT_TRUE(planned.ok());
  const DenseSequence a = MakeSequence(shape, length, 3);
  // Run plans again; the reservation must not grow.
  for (const int32_t begin : {length - 1, length - 64}) {
    Attend(rig, shape, {{&a, begin, length}});
    const std::vector<QueryRows> many(begin == length - 1 ? 32 : 1, QueryRows{&a, begin, length});
    Attend(rig, shape, many);
    rig.backend().BeginEncode(EncodeMode::kPlan);
    EXPECT_EQ(*rig.backend().FinishPlan(), *planned);
  }
}

}  // namespace
}  // namespace tandem::kernels
