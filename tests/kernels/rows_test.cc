// Embed, GatherRows, UnshardLogits and the copies: ops that move values without arithmetic.
#include "common/tensor/dequantize.h"
#include "common/tensor/f16.h"
#include "tests/kernels/backends.h"

namespace tandem::kernels {
namespace {

class RowsTest : public testing::TestWithParam<BackendCase> {};
TANDEM_INSTANTIATE_BACKENDS(RowsTest);

TEST_P(RowsTest, CopiesOfAllSizes) {
  Rig rig(GetParam());
  Random random(1);
  for (const size_t n : {size_t{0}, size_t{1}, size_t{1000}, size_t{3} << 20}) {
    const auto values = random.Floats(n);
    EXPECT_EQ(rig.Get(rig.Put(values), n), values);
  }
}

TEST_P(RowsTest, GathersRows) {
  Rig rig(GetParam());
  Random random(2);
  const auto src = random.Floats(10 * 7);
  const std::vector<int32_t> rows = {9, 0, 0, 4};
  float* const out = rig.Poisoned(rows.size() * 7, 1);
  const GatherRowsParams params{rig.Put(src), rig.Put(rows), 4, 7, out};
  rig.Run([&](Backend& b) { b.Encode(params); });
  const auto actual = rig.Get(out, rows.size() * 7);
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_EQ(actual[i], src[static_cast<size_t>(rows[i / 7]) * 7 + i % 7]);
  }
}

TEST_P(RowsTest, PutsUnevenSlicesSideBySide) {
  Rig rig(GetParam());
  Random random(3);
  constexpr uint32_t kRows = 3, kSliceMax = 8;
  const auto gathered = random.Floats(4 * kRows * kSliceMax);
  // A rank has nothing, or the first columns are another's.
  for (const std::vector<uint32_t>& starts : std::vector<std::vector<uint32_t>>{
           {0, 5, 5, 11, 14}, {2, 5, 5, 11, 14}, {0, 8, 12, 12, 16}, {4, 8, 8, 12, 20}}) {
    const uint32_t vocab = starts.back();
    const auto before = random.Floats(kRows * vocab);
    float* const out = rig.Put(before);
    float* const device = rig.Put(gathered);
    rig.Run([&](Backend& b) {
      // `starts` is read while encoding: it may be gone afterwards.
      std::vector<uint32_t> passing = starts;
      b.Encode(UnshardLogitsParams{device, passing.data(), 4, kRows, kSliceMax, out});
      passing.assign(passing.size(), 0);
    });
    auto expected = before;
    for (uint32_t rank = 0; rank < 4; ++rank) {
      for (uint32_t row = 0; row < kRows; ++row) {
        for (uint32_t c = 0; c < starts[rank + 1] - starts[rank]; ++c) {
          expected[row * vocab + starts[rank] + c] = gathered[(rank * kRows + row) * kSliceMax + c];
        }
      }
    }
    EXPECT_EQ(rig.Get(out, kRows * vocab), expected) << starts[0] << " to " << vocab;
  }
}

// Bytes of a table of random values of a type, and the values they stand for.
struct Table {
  std::vector<std::byte> bytes;
  std::vector<float> values;
  Weight weight;
};

Table MakeTable(tensor::Type type, uint32_t rows, uint32_t cols, size_t row_padding,
                uint32_t seed) {
  Table table;
  const size_t row_bytes = tensor::RowBytes(type, cols);
  const size_t stride = row_bytes + row_padding;
  Random random(seed);
  table.bytes.resize(rows * stride);
  for (size_t i = 0; i + 1 < table.bytes.size(); i += 2) {
    // F16 numbers between 1 and 2: finite when read as any type.
    const uint16_t half = static_cast<uint16_t>(0x3c00 | random.Int(0, 1023));
    std::memcpy(&table.bytes[i], &half, 2);
  }
  table.values.resize(size_t{rows} * cols);
  for (size_t r = 0; r < rows; ++r) {
    tensor::Dequantize(type, &table.bytes[r * stride], &table.values[r * cols], cols);
  }
  table.weight = {type, table.bytes.data(), rows, cols, stride, 0, cols};
  return table;
}

// Looks tokens up in a table of rows of `cols` values.
void ExpectEmbeds(Rig& rig, tensor::Type type, uint32_t cols) {
  constexpr uint32_t kBegin = 100;
  const Table table = MakeTable(type, 6, cols, 4, 4);
  const auto placed = rig.backend().PlaceWeight(table.weight);
  ASSERT_TRUE(placed.ok()) << placed.status();
  const std::vector<int32_t> ids = {100, 105, 99, 106, -1, 2147483647, -2147483647 - 1, 103, 103};
  float* const out = rig.Poisoned(ids.size() * cols);
  int32_t* const device_ids = rig.Put(ids);
  rig.Run([&](Backend& b) {
    b.Encode(
        EmbedParams{device_ids, static_cast<uint32_t>(ids.size()), *placed, kBegin, 0.5f, out});
  });
  const auto actual = rig.Get(out, ids.size() * cols);
  for (size_t i = 0; i < actual.size(); ++i) {
    const int64_t row = int64_t{ids[i / cols]} - kBegin;
    const bool inside = row >= 0 && row < 6;
    ASSERT_EQ(actual[i],
              inside ? 0.5f * table.values[static_cast<size_t>(row) * cols + i % cols] : 0.0f)
        << "token " << i / cols << " column " << i % cols;
  }
}

TEST_P(RowsTest, EmbedsRowsOfEveryTypeAndZerosOutsideTheSlice) {
  for (uint32_t number = 0; number < 64; ++number) {
    const auto traits = tensor::FindTypeTraits(number);
    if (!traits.has_value() || !traits->supported) continue;
    SCOPED_TRACE(traits->name);
    Rig rig(GetParam());
    ExpectEmbeds(rig, traits->type, 512);
    // Plain rows may have any length, not a multiple of what is read at once.
    if (traits->block_values == 1) ExpectEmbeds(rig, traits->type, 507);
  }
}

TEST_P(RowsTest, RefusesWeightsThatItCannotComputeWith) {
  Rig rig(GetParam());
  const std::vector<std::byte> bytes(4096);
  const auto code = [&](const Weight& w) { return rig.backend().PlaceWeight(w).status().code(); };
  const Weight good{tensor::Type::kQ8_0, bytes.data(), 2, 64, 68, 0, 64};
  EXPECT_EQ(code(good), absl::StatusCode::kOk);
  Weight bad = good;
  bad.type = tensor::Type::kF64;
  EXPECT_EQ(code(bad), absl::StatusCode::kUnimplemented);
  bad = good;
  bad.cols = 65;
  EXPECT_EQ(code(bad), absl::StatusCode::kInvalidArgument);
  bad = good;
  bad.col_begin = 1;
  EXPECT_EQ(code(bad), absl::StatusCode::kInvalidArgument);
  bad = good;
  const float scale = 0.5f;
  bad.scales = &scale;
  bad.use = WeightUse::kLookup;
  EXPECT_EQ(code(bad), absl::StatusCode::kUnimplemented);
  bad.use = WeightUse::kHeads;
  EXPECT_EQ(code(bad), absl::StatusCode::kUnimplemented);
  bad.use = WeightUse::kProduct;
  EXPECT_EQ(code(bad),
            GetParam().cuda() ? absl::StatusCode::kUnimplemented : absl::StatusCode::kOk);
  bad = good;
  bad.row_stride_bytes = 67;
  EXPECT_EQ(code(bad), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tandem::kernels
