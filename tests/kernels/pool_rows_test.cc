// PoolRows: sums in doubles, in the order of the rows, on every backend to the bit.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "tests/kernels/backends.h"

namespace tandem::kernels {
namespace {

class PoolRowsTest : public testing::TestWithParam<BackendCase> {};
TANDEM_INSTANTIATE_BACKENDS(PoolRowsTest);

std::vector<double> Pool(Rig& rig, const std::vector<float>& x, uint32_t dim,
                         const std::vector<RowRange>& ranges) {
  const size_t values = ranges.size() * dim;
  const PoolRowsParams params{rig.Put(x), rig.Put(ranges), static_cast<uint32_t>(ranges.size()),
                              dim, rig.Put(std::vector<double>(values, -1.0))};
  rig.Run([&](Backend& b) { b.Encode(params); });
  return rig.Get(params.out, values);
}

TEST_P(PoolRowsTest, AddsTheRowsOfEachRange) {
  for (const uint32_t dim : {1u, 7u, 128u, 513u, 1030u}) {
    SCOPED_TRACE(dim);
    Rig rig(GetParam());
    Random random(1);
    const auto x = random.Floats(40 * size_t{dim});
    const std::vector<RowRange> ranges = {{0, 1}, {39, 40}, {3, 30}, {0, 40}, {5, 6}};
    const std::vector<double> sums = Pool(rig, x, dim, ranges);
    for (size_t i = 0; i < ranges.size(); ++i) {
      for (size_t column = 0; column < dim; ++column) {
        double sum = 0;
        for (size_t row = ranges[i].begin; row < ranges[i].end; ++row) sum += x[row * dim + column];
        ASSERT_EQ(sums[i * dim + column], sum) << "range " << i << " column " << column;
      }
    }
  }
}

// In floats a million ones after 2^24 would not change it.
TEST_P(PoolRowsTest, AddsInDoubles) {
  Rig rig(GetParam());
  std::vector<float> x(1001, 1.0f);
  x.front() = 0x1p24f;
  EXPECT_EQ(Pool(rig, x, 1, {{0, 1001}}), std::vector<double>{0x1p24 + 1000});
}

TEST_P(PoolRowsTest, WhatIsNotFiniteStaysSo) {
  Rig rig(GetParam());
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<double> sums = Pool(rig, {1.0f, nan, 2.0f, 3.0f}, 2, {{0, 2}, {1, 2}});
  EXPECT_EQ(sums[0], 3.0);
  EXPECT_NE(sums[1], sums[1]);
  EXPECT_EQ(sums[3], 3.0);
}

}  // namespace
}  // namespace tandem::kernels
